"""When an experiment starts: at a moment that is given, or at one that is told once all trainers are ready.

A trainer that is to wait says in a folder that it is ready, and reads there when to start. How long it takes to be
ready differs by seconds on a busy machine, and must not be part of what is measured.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from topologies.trainer.results import write_whole
from topologies.trainer.transfers.task import HaltedError

START_FILE = "start"
_LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Zero:
    """The experiment's start: one moment by two clocks, in seconds."""

    monotonic: float
    epoch: float


class Start:
    """What the tasks of a trainer wait for, each once it is ready. For any thread."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._lock = threading.Lock()
        self._zero: Zero | None = None
        self._ready = 0

    @property
    def epoch(self) -> float:
        """The start in seconds since the epoch; now, where it was not told."""
        return time.time() if self._zero is None else self._zero.epoch

    @property
    def ready(self) -> int:
        """How many tasks are ready."""
        return self._ready

    def tell(self, epoch: float) -> None:
        """It is ``epoch``."""
        self._zero = Zero(time.monotonic() + epoch - time.time(), epoch)
        self._told.set()

    def call_off(self) -> None:
        """It will not be; harmless once it was told."""
        self._told.set()

    def wait(self) -> Zero:
        """Say that the caller is ready, and wait for the start. Raises HaltedError where there is none."""
        with self._lock:
            self._ready += 1
        self._told.wait()
        if self._zero is None:
            raise HaltedError
        return self._zero


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where trainers say that they are ready, each a file of its name, and are told the start: a shared folder."""

    folder: Path

    def arrive(self, name: str) -> None:
        """Say that all of ``name`` is ready. Raises OSError."""
        write_whole(self.folder / name, "")

    def missing(self, names: frozenset[str]) -> frozenset[str]:
        """Who is not ready yet."""
        return names - {path.name for path in self.folder.iterdir()}

    def begin(self, epoch: float) -> None:
        """Tell all. Raises OSError."""
        write_whole(self.folder / START_FILE, f"{epoch:.3f}")

    def join(self, name: str) -> Zero:
        """Say that all of ``name`` is ready, and wait until the start is told. Raises OSError, ValueError."""
        self.arrive(name)
        while (epoch := self.told()) is None:
            time.sleep(_LOOK_SECONDS)
        return Zero(time.monotonic() + epoch - time.time(), epoch)

    def told(self) -> float | None:
        """The start in seconds since the epoch; None: not yet. Raises OSError, ValueError."""
        file = self.folder / START_FILE
        return float(file.read_text()) if file.exists() else None


def name_of(host: str, job: str | None) -> str:
    """What the trainer of a host, or of one job's part there, is called."""
    return host if job is None else f"{host}-{job}"
