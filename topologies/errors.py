"""What can go wrong in a lab, and how what other programs say of it becomes one line for a person."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator


class LabError(RuntimeError):
    """Part of the lab did not do its work; the message names it, and where its log is or what it said."""


class LabInputError(LabError):
    """What was asked for cannot be run; the message says what would be right."""


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Meanwhile a tool that fails and a file that cannot be used raise LabError, with the reason in one line."""
    try:
        yield
    except subprocess.CalledProcessError as error:
        said = _text(error.stderr) or _text(error.stdout)
        reason = said.splitlines()[-1] if said else f"ended with status {error.returncode}"
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
