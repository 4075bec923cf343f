"""Runs a prediction in a process of its own, for the factory and its model are anybody's code.

Whatever they do, the command answers: they may print without end, end the process, crash it, start threads or never
return. Their standard output is the command's standard error, so that ``--json`` stays one document; the answer itself
comes through a pipe that they do not know of. Nothing here needs PyTorch.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FAILED, WRONG_INPUT = 1, 2
CANNOT_ANSWER = 97
"""A process that cannot answer any more ends with this status."""

MIN_DESCRIPTOR = 3
"""The pipe has no descriptor below this one: those are the standard streams, even where they were closed."""

PATIENCE_SECONDS = 2.0
"""A process that has answered may take this long to end by itself."""

GRACE_SECONDS = 1.0
"""An interrupted process may take this long to end."""

_PIECE = 65536
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_BOOT = (
    "import json, sys; spec = json.loads(sys.argv[1]); sys.path[:], sys.argv[:] = spec['path'], spec['arguments']; "
    "from deepprophet.factory_main import main; main(spec)"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a prediction ended: the exit status, what goes to standard output, and what is wrong, for people."""

    status: int
    out: str = ""
    problem: str = ""


def run(options: Mapping[str, Any], began: float) -> Answer:
    """Predict by the command's options. ``began``: the command, by ``time.perf_counter``. Raises OSError."""
    spec = {"path": sys.path, "arguments": sys.argv, "options": options, "began": began, "parent": os.getpid()}
    return run_process([sys.executable, "-P", "-c", _BOOT], spec)


def run_process(command: Sequence[str], spec: Mapping[str, Any]) -> Answer:
    """Start a process with a spec, as JSON in its last argument, and hear its answer. Raises OSError.

    The spec is given the descriptor that it answers to (``answer``): lines of JSON, ``{"doing": ..., "theirs": ...}``
    for what it does now and whether that is code of the factory's, and at the end ``{"status": ..., "out": ...,
    "problem": ...}``. Whatever happens here, the process has ended when this returns.
    """
    with _pipe() as (ours, theirs):
        try:
            process = subprocess.Popen(
                [*command, json.dumps({**spec, "answer": theirs})],
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__.fileno() if sys.__stderr__ is not None else subprocess.DEVNULL,
                pass_fds=(theirs,),
            )
        finally:
            os.close(theirs)
        try:
            return _read_answer(process, ours)
        except KeyboardInterrupt:
            # A terminal has interrupted both. It may keep what it has measured; a second time ends this too.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            raise
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """A pipe's ends, none with the number of a standard stream. Who hands the second on closes it."""
    ends = os.pipe()
    ours, theirs = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, MIN_DESCRIPTOR) for end in ends)
    for end in ends:
        os.close(end)
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def _read_answer(process: subprocess.Popen[bytes], pipe: int) -> Answer:
    doing, is_theirs = "the process was starting", False
    for message in _messages(process, pipe):
        if "status" in message:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_SECONDS)
            return Answer(message["status"], message["out"], message["problem"])
        doing, is_theirs = message["doing"], message["theirs"]
    return _ended(process, doing, is_theirs=is_theirs)


def _messages(process: subprocess.Popen[bytes], pipe: int) -> Iterator[dict[str, Any]]:
    """What the process tells, until it ends. It may leave children behind that hold the pipe open."""
    os.set_blocking(pipe, False)
    left = b""
    with selectors.DefaultSelector() as selector, _descriptor(process) as ended:
        selector.register(pipe, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while True:
            has_ended = any(key.fd == ended for key, _ in selector.select())
            closed = False
            with contextlib.suppress(BlockingIOError):
                while not closed:
                    piece = os.read(pipe, _PIECE)
                    closed, left = not piece, left + piece
                    *lines, left = left.split(b"\n")
                    yield from map(json.loads, lines)
            if has_ended or closed:
                return


@contextlib.contextmanager
def _descriptor(process: subprocess.Popen[bytes]) -> Iterator[int]:
    """One that can be read from once the process has ended."""
    descriptor = os.pidfd_open(process.pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _ended(process: subprocess.Popen[bytes], doing: str, *, is_theirs: bool) -> Answer:
    """The answer for a process that gave none."""
    try:
        code = process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        code = CANNOT_ANSWER
    if code == CANNOT_ANSWER:
        problem = f"while {doing} the code closed all open files, and with them the way to answer"
        return Answer(WRONG_INPUT, problem=problem)
    if code >= 0:
        problem = (
            f"while {doing} the code ended the process with status {code}, as os._exit does; it must return instead"
        )
        return Answer(WRONG_INPUT if is_theirs else FAILED, problem=problem)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    crashed = is_theirs and -code in _CRASHES
    hint = "; the system may have been out of memory" if -code == signal.SIGKILL else ""
    return Answer(WRONG_INPUT if crashed else FAILED, problem=f"while {doing} the process was ended by {name}{hint}")
