"""The start of an experiment: a given moment, or one that is announced once all trainers are ready.

In the second case a trainer writes a file into a shared folder when it is ready, and reads the start from there. The
time until a trainer is ready differs by seconds on a busy machine, and must not be part of the measurement.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from topologies.trainer.results import write_whole
from topologies.trainer.transfers.task import HaltedError

START_FILE = "start"
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Zero:
    """The experiment's start as the same moment by two clocks, in seconds."""

    monotonic: float
    epoch: float


class Start:
    """The start that the tasks of a trainer wait for, each once it is ready. Any thread may use it."""

    def __init__(self) -> None:
        self._announced = threading.Event()
        self._lock = threading.Lock()
        self._zero: Zero | None = None
        self._ready = 0

    @property
    def epoch(self) -> float:
        """The start in seconds since the epoch; the present time where it is not announced yet."""
        return time.time() if self._zero is None else self._zero.epoch

    @property
    def ready(self) -> int:
        """How many tasks are ready."""
        return self._ready

    def announce(self, epoch: float) -> None:
        """Let all tasks start at ``epoch``, in seconds since the epoch."""
        self._zero = Zero(time.monotonic() + epoch - time.time(), epoch)
        self._announced.set()

    def call_off(self) -> None:
        """Stop all tasks that wait. After the start was announced, this does nothing."""
        self._announced.set()

    def wait(self) -> Zero:
        """Count the caller as ready, and wait for the start. Raises HaltedError where the start is called off."""
        with self._lock:
            self._ready += 1
        self._announced.wait()
        if self._zero is None:
            raise HaltedError
        return self._zero


@dataclass(frozen=True, slots=True)
class Meeting:
    """A shared folder in which each trainer leaves a file when it is ready, and in which the start is announced."""

    folder: Path

    def arrive(self, name: str) -> None:
        """Note that ``name`` is ready. Raises OSError."""
        write_whole(self.folder / name, "")

    def missing(self, names: frozenset[str]) -> frozenset[str]:
        """Return the names that are not ready yet."""
        return names - {path.name for path in self.folder.iterdir()}

    def begin(self, epoch: float) -> None:
        """Announce the start, in seconds since the epoch. Raises OSError."""
        write_whole(self.folder / START_FILE, f"{epoch:.3f}")

    def join(self, name: str) -> Zero:
        """Note that ``name`` is ready, and wait until the start is announced. Raises OSError, ValueError."""
        self.arrive(name)
        while (epoch := self.announced()) is None:
            time.sleep(_POLL_SECONDS)
        return Zero(time.monotonic() + epoch - time.time(), epoch)

    def announced(self) -> float | None:
        """Return the start in seconds since the epoch; None before it is announced. Raises OSError, ValueError."""
        file = self.folder / START_FILE
        return float(file.read_text()) if file.exists() else None


def name_of(host: str, job: str | None) -> str:
    """Return the name of the trainer of a host, or of one job on that host."""
    return host if job is None else f"{host}-{job}"
