"""Calls: while an experiment runs, a study's tuner starts a job with a file in a shared folder.

A trainer prepares every job of its host before the experiment starts, and begins the jobs that are called. So the first
iteration of a late job is no slower than that of any other. One thread of each trainer watches the folder.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from controller.wire import Message
from topologies.trainer.results import write_whole
from topologies.trainer.transfers.task import HaltedError

POLL_SECONDS = 0.1
LEAD_SECONDS = 0.5
"""A job arrives this many seconds after its call, when all of its hosts have read the call."""


class Call(Message):
    """The work of a called job: iterations from ``begin`` + 1 on, in a run of ``total``, along a recorded ``curve``.

    The job arrives at ``arrival``, in seconds since the epoch, and belongs to a ``stage`` of its study, which
    ``rungs_left`` rungs follow.
    """

    arrival: Annotated[float, Field(ge=0, le=4e9)]
    curve: str
    begin: Annotated[int, Field(ge=0, le=10**7)]
    total: Annotated[int, Field(ge=1, le=10**7)]
    stage: str
    rungs_left: Annotated[int, Field(ge=0, le=100)]


def call_file(directory: Path, job: str) -> Path:
    """Return the file that calls a job."""
    return directory / "calls" / f"{job}.json"


def call(directory: Path, job: str, content: Call) -> None:
    """Call a job. Raises OSError."""
    write_whole(call_file(directory, job), content.model_dump_json() + "\n")


def read_call(path: Path) -> Call:
    """Read a job's call. Raises OSError, and ValueError with the file's name where it is not a call."""
    try:
        return Call.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path}: not a job's call: {error}") from error


class Calls:
    """The calls that the tasks of a trainer wait for. Any thread may ``wait``.

    First ``expect`` all jobs, then ``listen``. ``call_off`` ends every wait.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._waiting: dict[str, threading.Event] = {}
        self._over = threading.Event()

    def expect(self, job: str) -> None:
        """Note that a task here waits for this job's call."""
        self._waiting[job] = threading.Event()

    def listen(self) -> None:
        """Watch for calls from now on, if any is expected."""
        if self._waiting:
            threading.Thread(target=self._watch, daemon=True, name="calls").start()

    def wait(self, job: str) -> Call:
        """Wait for the call of a job and return it.

        Raises HaltedError after ``call_off``, OSError, ValueError.
        """
        self._waiting[job].wait()
        if self._over.is_set():
            raise HaltedError
        return read_call(call_file(self._directory, job))

    def call_off(self) -> None:
        """Stop all tasks that still wait."""
        self._over.set()
        for event in self._waiting.values():
            event.set()

    def _watch(self) -> None:
        missing = dict(self._waiting)
        folder = call_file(self._directory, "any").parent
        while missing and not self._over.wait(POLL_SECONDS):
            called = {path.stem for path in folder.iterdir()} if folder.is_dir() else set()
            for job in missing.keys() & called:
                missing.pop(job).set()
