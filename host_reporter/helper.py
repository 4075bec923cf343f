"""The two lines for a training script: a JSON-lines progress file, written without ever hurting the training.

``report`` hands its numbers to a thread and returns; the thread writes each record with one appending write, so
records of several processes do not mix. A full disk, a missing folder or a file system that hangs costs records, which
are counted in ``dropped``, never an exception or a wait. Only the standard library is imported, and little of that.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import math
import os
import queue
import threading
import time as clock
import weakref
from typing import SupportsFloat

DIRECTORY_VARIABLE = "TRAINYARD_PROGRESS_DIR"
DEFAULT_DIRECTORY = "/run/trainyard/progress"
"""In memory and local, so that a write waits for no disk and no network."""

MAX_WAITING = 10_000
"""Records that wait for the thread; more are dropped."""

MAX_FILE_BYTES = 16 * 2**20
"""A longer file is begun anew: the agent has long read it."""

FLUSH_SECONDS = 0.2
"""What ``end`` and the end of the process wait at most."""

Value = SupportsFloat | str
_Record = tuple[float, float | None, float | None]

log = logging.getLogger(__name__)
_files: weakref.WeakSet[ProgressFile] = weakref.WeakSet()
_by_job: dict[str, ProgressFile] = {}


class ProgressFile:
    """The progress file of one job: ``report`` a measurement, ``end`` the job. No method raises.

    ``directory``: by default that of the variable TRAINYARD_PROGRESS_DIR, else ``/run/trainyard/progress``. For any
    thread; a forked child writes for itself.
    """

    def __init__(self, job: str, directory: str | bytes | os.PathLike[str] | None = None) -> None:
        self.job = job
        folder = os.fsdecode(directory or os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY)
        self.path = os.path.join(folder, f"{job}.jsonl")  # noqa: PTH118 - pathlib costs milliseconds at import
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None
        self._begin()
        _files.add(self)

    def report(self, *, iteration: Value, metric: Value | None = None, time: Value | None = None) -> None:
        """Say that ``iteration`` iterations are done, with the metric then if it was measured.

        ``time``: seconds since the epoch, now by default. Anything that converts to a number will do (a tensor's item).
        """
        try:
            now = clock.time() if time is None else float(time)
            self._put((now, float(iteration), _measured(metric)))
        except Exception as error:
            self._drop(error)

    def end(self) -> None:
        """Say that the job has ended; waits until that is written, FLUSH_SECONDS at most."""
        try:
            self._put((clock.time(), None, None))
            self.flush()
        except Exception as error:
            self._drop(error)

    def flush(self, seconds: float = FLUSH_SECONDS) -> None:
        """Wait until all that was reported is written or dropped, ``seconds`` at most."""
        if self._thread is not None:
            reached = threading.Event()
            self._waiting.put(reached)
            reached.wait(seconds)

    def _begin(self) -> None:
        """Also in a forked child: the parent's thread, and what waits for it, are the parent's."""
        self.dropped = 0
        self._waiting: queue.SimpleQueue[_Record | threading.Event] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._torn = False
        self._close()

    def _put(self, record: _Record) -> None:
        if self._waiting.qsize() >= MAX_WAITING:
            self.dropped += 1
            return
        self._waiting.put(record)
        # Without a wait: who holds it is starting the thread, and may be what a signal's handler has interrupted.
        if self._thread is None and self._starting.acquire(blocking=False):
            try:
                if self._thread is None:
                    thread = threading.Thread(target=self._write, name="trainyard progress", daemon=True)
                    thread.start()
                    self._thread = thread
            finally:
                self._starting.release()

    def _write(self) -> None:
        while True:
            record = self._waiting.get()
            if isinstance(record, threading.Event):
                record.set()
                continue
            try:
                self._append(_line(*record))
            except Exception as error:
                self._drop(error)

    def _append(self, line: bytes) -> None:
        if not self._is_ours():
            # The training closed it with all its descriptors; the number may be another file's by now.
            self._descriptor = None
        if self._descriptor is not None:
            status = os.fstat(self._descriptor)
            if status.st_nlink == 0:
                self._close()
            elif status.st_size + len(line) > MAX_FILE_BYTES:
                os.ftruncate(self._descriptor, 0)
        if self._descriptor is None:
            if "/" in self.job:
                raise ValueError("the id of a job has no slash")
            os.makedirs(os.path.dirname(self.path), exist_ok=True)  # noqa: PTH103, PTH120 - as above
            # The folder is anyone's: a link there might lead to a file of this user's.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
            self._descriptor = os.open(self.path, flags, 0o644)
            status = os.fstat(self._descriptor)
            self._identity = (status.st_dev, status.st_ino)
        # After half a line (a full disk) the next one must not be joined to it.
        whole = b"\n" + line if self._torn else line
        written = os.write(self._descriptor, whole)
        self._torn = written < len(whole)
        if self._torn:
            raise OSError("only a part was written")

    def _is_ours(self) -> bool:
        if self._descriptor is None:
            return False
        try:
            status = os.fstat(self._descriptor)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def _close(self) -> None:
        if self._is_ours() and self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
        self._descriptor = None

    def _drop(self, error: Exception) -> None:
        self.dropped += 1
        if self.dropped == 1:
            log.debug("progress of job %s is not written to %s: %s", self.job, self.path, error)


def progress(job: str) -> ProgressFile:
    """The progress file of ``job``, the same one at each call in a process. Never raises."""
    found = _by_job.get(str(job))
    return found if found is not None else _by_job.setdefault(str(job), ProgressFile(str(job)))


def _measured(metric: Value | None) -> float | None:
    """A metric as a number. One that is none (a tensor of several elements) must not cost the iteration."""
    try:
        return None if metric is None else float(metric)
    except Exception:
        return None


def _line(time: float, iteration: float | None, metric: float | None) -> bytes:
    """A record as a line; without an iteration the job has ended. Raises ValueError for what is no number."""
    record: dict[str, float | bool] = {"time": time}
    if iteration is None:
        record["ended"] = True
    else:
        record["iteration"] = iteration
        # A metric that is no number (a diverged loss) still was progress.
        if metric is not None and math.isfinite(metric):
            record["metric"] = metric
    return (json.dumps(record, allow_nan=False) + "\n").encode()


def _begin_in_child() -> None:
    for file in list(_files):
        file._begin()


def _flush_all() -> None:
    deadline = clock.monotonic() + FLUSH_SECONDS
    for file in list(_files):
        file.flush(max(0.0, deadline - clock.monotonic()))


os.register_at_fork(after_in_child=_begin_in_child)
atexit.register(_flush_all)
