"""The errors of a lab, each of which is one line for a person."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator


class LabError(RuntimeError):
    """A part of the lab failed. The message names the part, and its log or its last words."""


class LabInputError(LabError):
    """The request cannot be run. The message says what would be right."""


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Inside the context a failing tool and an unusable file raise LabError, with the reason in one line."""
    try:
        yield
    except subprocess.CalledProcessError as error:
        output = _text(error.stderr) or _text(error.stdout)
        reason = output.splitlines()[-1] if output else f"ended with status {error.returncode}"
        raise LabError(f"{_command(error.cmd)}: {reason}") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{_command(error.cmd)} did not end within {error.timeout:g} s") from error
    except OSError as error:
        named = f"{error.filename}: " if error.filename is not None else ""
        raise LabError(f"{named}{error.strerror or error}") from error


def _command(command: object) -> str:
    return " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command)


def _text(output: object) -> str:
    return (output.decode(errors="replace") if isinstance(output, bytes) else str(output or "")).strip()
