"""The two lines for a training script: a JSON-lines progress file, written without ever hurting the training.

``progress()`` without a name takes the job that the environment tells: TRAINYARD_JOB's, torchrun's, Slurm's or another
launcher's. With or without a name only rank 0 reports, as every launcher of ``host_reporter.training.ranks`` counts.

``report`` hands its numbers to a thread and returns; the thread writes what has come with one appending write, so
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

from host_reporter.training.ranks import find_ranks

DIRECTORY_VARIABLE = "TRAINYARD_PROGRESS_DIR"
DEFAULT_DIRECTORY = "/run/trainyard/progress"
"""In memory and local, so that a write waits for no disk and no network."""

MAX_WAITING = 10_000
"""At most so many records wait for the thread; more are dropped."""

MAX_FILE_BYTES = 16 * 2**20
"""A longer file is begun anew, since the agent has read it long ago."""

GATHER_SECONDS = 0.002
"""Records that come within this time go into one write."""

MAX_GATHERED = 200
"""One write has at most so many records."""

FLUSH_SECONDS = 0.2
"""``end`` and the end of the process wait for at most this long."""

Value = SupportsFloat | str
_Record = dict[str, Value | None]

_NOBODY = "\0"
_SEEN_LOSS = "seen_loss"

log = logging.getLogger(__name__)
_files: weakref.WeakSet[ProgressFile] = weakref.WeakSet()
_by_job: dict[str, ProgressFile] = {}


class ProgressFile:
    """The progress file of one job: ``report`` a measurement, ``end`` the job. No method raises.

    ``directory``: by default that of the variable TRAINYARD_PROGRESS_DIR, else ``/run/trainyard/progress``. For any
    thread; a forked child writes for itself. In a rank that is not 0 nothing is written, unless ``every_rank``: the
    ranks then report different jobs, such as the trials of a tuner.

    Where another user has a file of the job's name, the file is ``JOB.UID.jsonl``, with this user's number.
    """

    def __init__(
        self, job: str, directory: str | bytes | os.PathLike[str] | None = None, *, every_rank: bool = False
    ) -> None:
        self.job = job
        self._is_silent = not every_rank and not _is_first()
        folder = os.fsdecode(directory or os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY)
        self.path = os.path.join(folder, f"{job}.jsonl")  # noqa: PTH118 - pathlib costs milliseconds at import
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None
        self._begin()
        _files.add(self)

    def report(self, *, iteration: Value, metric: Value | None = None, time: Value | None = None) -> None:
        """Say that ``iteration`` iterations are done, with the metric then if it was measured.

        ``time``: seconds since the epoch, now by default. Anything that converts to a number will do (a tensor's item).
        A metric that is no finite number says that the job has diverged.
        """
        try:
            now = clock.time() if time is None else float(time)
            self._put({"time": now, "iteration": float(iteration), "metric": _measured(metric)})
        except Exception as error:
            self._drop(error)

    def report_soon(
        self, iteration: float, metric: SupportsFloat | None, *, seen_loss: SupportsFloat | None = None
    ) -> None:
        """As ``report``, but the metric becomes a number in the thread: it may still be computed, on an accelerator.

        ``seen_loss`` is no metric. It only says that the job has diverged, if it is no finite number.
        """
        try:
            record: _Record = {"time": clock.time(), "iteration": float(iteration), "metric": metric}
            self._put(record if seen_loss is None else record | {_SEEN_LOSS: seen_loss})
        except Exception as error:
            self._drop(error)

    def target(self, value: Value | None) -> None:
        """Declare the value of the metric that the user calls done; None: there is none.

        A target in the job file counts before it.
        """
        try:
            self._put({"time": clock.time(), "target": None if value is None else float(value)})
        except Exception as error:
            self._drop(error)

    def diverged(self) -> None:
        """Say that the run has diverged: its metric or its loss is no finite number."""
        try:
            self._put({"time": clock.time(), "diverged": True})
        except Exception as error:
            self._drop(error)

    def stage(self, name: str | None, until: Value | None = None, rungs_left: Value | None = None) -> None:
        """Say that the job is in a stage of its study now, such as ``b0.r1``; None: in none.

        ``until``: the iterations done at the end of the stage, where they are known. ``rungs_left``: how many rungs of
        the study follow it, where that is known; 0: it is the last.
        """
        try:
            record: _Record = {"time": clock.time(), "stage": None if name is None else str(name)}
            self._put(record | {"until": _measured(until), "rungs_left": _measured(rungs_left)})
        except Exception as error:
            self._drop(error)

    def end(self) -> None:
        """Say that the job has ended; waits until that is written, FLUSH_SECONDS at most."""
        try:
            self._put({"time": clock.time(), "ended": True})
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
        if self._is_silent:
            return
        if self._waiting.qsize() >= MAX_WAITING:
            self.dropped += 1
            return
        self._waiting.put(record)
        # Without a wait: who holds it is starting the thread, and may be what a signal's handler has interrupted. Once
        # more after that: a thread that went meanwhile has left what was put to whoever holds it.
        while self._thread is None and not self._waiting.empty() and self._starting.acquire(blocking=False):
            try:
                if self._thread is None:
                    self._start()
            finally:
                self._starting.release()

    def _start(self) -> None:
        thread = self._thread = threading.Thread(target=self._write, name="trainyard progress", daemon=True)
        try:
            thread.start()
        except BaseException:
            self._thread = None
            raise

    def _write(self) -> None:
        is_over = False
        while True:
            lines: list[bytes] = []
            reached: list[threading.Event] = []
            for record in self._next():
                if isinstance(record, threading.Event):
                    reached.append(record)
                    continue
                is_over = "ended" in record
                try:
                    lines.append(_line(record))
                except Exception as error:
                    self._drop(error)
            try:
                if lines:
                    self._append(b"".join(lines))
            except Exception as error:
                self._drop(error, len(lines))
            for event in reached:
                event.set()
            if is_over and self._retire():
                return

    def _next(self) -> list[_Record | threading.Event]:
        """What waits, once something does: of many reports each would wake the thread, and slow the training."""
        records = [self._waiting.get()]
        clock.sleep(GATHER_SECONDS)
        while len(records) < MAX_GATHERED and not self._waiting.empty():
            records.append(self._waiting.get())
        return records

    def _retire(self) -> bool:
        """After an end: give the file and the thread back, since a process may report many trials.

        Returns whether the thread is to end.

        What was put before the thread is taken off is seen here; who puts later sees that there is none, and starts
        one.
        """
        self._close()
        self._thread = None
        if self._waiting.empty() or not self._starting.acquire(blocking=False):
            return True
        try:
            taken: threading.Thread | None = self._thread
            if taken is None:
                self._thread = threading.current_thread()
            return taken is not None
        finally:
            self._starting.release()

    def _append(self, lines: bytes) -> None:
        if not self._is_ours():
            # The training closed it with all its descriptors; the number may be another file's by now.
            self._descriptor = None
        if self._descriptor is not None:
            status = os.fstat(self._descriptor)
            if status.st_nlink == 0:
                self._close()
            elif status.st_size + len(lines) > MAX_FILE_BYTES:
                os.ftruncate(self._descriptor, 0)
        if self._descriptor is None:
            if "/" in self.job:
                raise ValueError("the id of a job has no slash")
            self._descriptor = self._open()
        # After half a line (a full disk) the next one must not be joined to it.
        whole = b"\n" + lines if self._torn else lines
        written = os.write(self._descriptor, whole)
        self._torn = written < len(whole)
        if self._torn:
            raise OSError("only a part was written")

    def _open(self) -> int:
        """Returns the opened file, or the one with this user's number where another user has that name."""
        folder = os.path.dirname(self.path)  # noqa: PTH120 - as above
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as above
        user = os.geteuid()
        try:
            descriptor = _opened(self.path)
            # A file of root's was made by the operator for this job.
            is_anothers = os.fstat(descriptor).st_uid not in (user, 0)
            if is_anothers:
                os.close(descriptor)
        except PermissionError:
            is_anothers = _belongs_to_another(self.path, user)
            if not is_anothers:
                raise
        if is_anothers:
            self.path = os.path.join(folder, f"{self.job}.{user}.jsonl")  # noqa: PTH118 - as above
            descriptor = _opened(self.path)
        status = os.fstat(descriptor)
        self._identity = (status.st_dev, status.st_ino)
        return descriptor

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

    def _drop(self, error: Exception, count: int = 1) -> None:
        self.dropped += count
        if self.dropped == count:
            log.debug("progress of job %s is not written to %s: %s", self.job, self.path, error)


class Silent(ProgressFile):
    """Writes nothing: another rank reports for the job, or the job is not known."""

    def __init__(self) -> None:
        super().__init__("nobody")
        self._is_silent = True


def progress(job: str | None = None, directory: str | bytes | os.PathLike[str] | None = None) -> ProgressFile:
    """The progress file of ``job``, the same one at each call in a process. Never raises.

    Without a name: that of the job that the environment tells of (docs/frameworks.md). In a rank that is not 0, or
    where there is no name, what is reported goes nowhere; the latter is logged.
    """
    try:
        name = _named(job)
        if name is None:
            return _by_job.get(_NOBODY) or _by_job.setdefault(_NOBODY, Silent())
        key = name if directory is None else f"{os.fsdecode(directory)}/{name}"
        return _by_job.get(key) or _by_job.setdefault(key, ProgressFile(name, directory))
    except Exception as error:
        log.debug("no progress is reported: %s", error)
        return Silent()


def _named(job: str | None) -> str | None:
    """Returns the job to report; None: nothing is to be reported."""
    if not _is_first():
        return None
    if job is not None:
        return str(job)
    from host_reporter.training.launch import find  # noqa: PLC0415 - who gives a name pays for no more than that

    launch = find(os.environ)
    if launch.job is None and _NOBODY not in _by_job:
        log.warning("no progress is reported: give progress() the job's id, or set TRAINYARD_JOB")
    return launch.job


def _is_first() -> bool:
    """Returns whether this process is rank 0, or of no launcher."""
    ranks = find_ranks(os.environ)
    return ranks is None or ranks.rank == 0


def _opened(path: str) -> int:
    """Returns a descriptor of a progress file. Raises OSError."""
    # The folder is anyone's: a link there might lead to a file of this user's.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    return os.open(path, flags, 0o644)


def _belongs_to_another(path: str, user: int) -> bool:
    """Returns whether a path is that of a file of another user."""
    try:
        return os.lstat(path).st_uid != user
    except OSError:
        return False


def _measured(metric: Value | None) -> float | None:
    """A metric as a number. One that is none (a tensor of several elements) must not cost the iteration."""
    try:
        return None if metric is None else float(metric)
    except Exception:
        return None


def _is_not_finite(value: Value | None) -> bool:
    """Returns whether a value is a number that is not finite; what is no number at all says nothing."""
    number = _measured(value)
    return number is not None and not math.isfinite(number)


def _line(record: _Record) -> bytes:
    """A record as a line. Raises ValueError for what is no number."""
    diverged = _is_not_finite(record.get("metric")) or _is_not_finite(record.pop(_SEEN_LOSS, None))
    for key in ("metric", "until", "rungs_left"):
        if key in record:
            # A metric that is no number (a diverged loss) still was progress.
            record[key] = value = _measured(record[key])
            if value is None or not math.isfinite(value):
                del record[key]
    if diverged:
        record["diverged"] = True
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
