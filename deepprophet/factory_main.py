"""The process in which a factory runs: its model is made, traced and measured here, and predicted. Needs PyTorch."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deepprophet import collector
from deepprophet.errors import InputError, ProphetError, exited
from deepprophet.factory_process import CANNOT_ANSWER, FAILED, WRONG_INPUT, Answer

INTERRUPTED = 130
PATHS = ("network", "mapping", "calibration", "device_sheet", "timeline", "registration")
"""Options that are paths, which JSON does not know."""

Doing = Callable[[str, bool], None]
_PR_SET_PDEATHSIG = 1


def main(spec: Mapping[str, Any]) -> None:
    """Answer, and end at once: what the factory has left running, as threads, does not keep the command."""
    _end_with(spec["parent"])
    descriptor = spec["answer"]
    # A process that the factory starts does not answer.
    os.set_inheritable(descriptor, False)

    def doing(what: str, theirs: bool) -> None:
        _tell(descriptor, {"doing": what, "theirs": theirs})

    answer = predict(options_of(spec["options"]), spec["began"], doing)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _tell(descriptor, {"status": answer.status, "out": answer.out, "problem": answer.problem})
    os._exit(0)


def predict(options: argparse.Namespace, began: float, doing: Doing) -> Answer:
    """Predict, and say how that ended. ``doing`` is told what is done next, and whether that is the factory's code."""
    doing("PyTorch was loaded", False)
    try:
        with collector.paused():
            from deepprophet import engine  # noqa: PLC0415 - it takes a second, and may fail

        return Answer(0, engine.predict_all(options, began, doing))
    except InputError as error:
        return Answer(WRONG_INPUT, problem=str(error))
    except (ProphetError, OSError) as error:
        return Answer(FAILED, problem=str(error))
    except KeyboardInterrupt:
        return Answer(INTERRUPTED, problem="stopped")
    except SystemExit as error:
        return Answer(WRONG_INPUT, problem=exited(error))
    except BaseException as error:  # whatever anybody's code raises, and at any time
        return Answer(FAILED, problem=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


def as_json(options: argparse.Namespace) -> dict[str, Any]:
    """The command's options as a spec has them."""
    values = {name: value for name, value in vars(options).items() if not callable(value)}
    return values | {name: str(values[name]) for name in PATHS if values[name] is not None}


def options_of(values: Mapping[str, Any]) -> argparse.Namespace:
    """The command's options from a spec."""
    return argparse.Namespace(**{**values, **{name: Path(values[name]) for name in PATHS if values[name] is not None}})


def _tell(descriptor: int, message: Mapping[str, Any]) -> None:
    left = json.dumps(message).encode() + b"\n"
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        os._exit(CANNOT_ANSWER)


def _end_with(parent: int) -> None:
    """Let the system end this process with the command's: what never returns would outlive a killed one."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(FAILED)
