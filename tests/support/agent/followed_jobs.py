"""A follower of job files in a thread, and what it has handed on."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any

from controller.model import Progress
from controller.wire import JobSpec
from host_reporter.jobs.follower import Follower
from host_reporter.jobs.jobs_dir import JobsDirectory
from host_reporter.notices import Notices

PATTERN = r"step (?P<iteration>\d+) acc (?P<metric>\S+)"


class Recorder:
    """What was handed on; ``add`` and ``end`` of a job that is not declared are faults."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, object]] = []
        self._running: set[str] = set()
        self.unread: dict[str, list[str]] = {}
        self.specs: dict[str, list[JobSpec | None]] = {}
        self.added: list[Progress] = []

    def declare(self, job: str, spec: JobSpec | None) -> None:
        self._running.add(job)
        self.specs.setdefault(job, []).append(spec)
        self.calls.append(("declare", job, spec.weight if spec is not None else None))

    def add(self, job: str, points: list[Progress]) -> None:
        assert job in self._running
        self.calls.append(("add", job, [point.iteration for point in points]))
        self.added += points

    def diverge(self, job: str) -> None:
        assert job in self._running
        self.calls.append(("diverge", job, None))

    def note_unread(self, job: str, reason: str) -> None:
        assert job in self._running
        self.unread.setdefault(job, []).append(reason)

    def end(self, job: str) -> None:
        self._running.remove(job)
        self.calls.append(("end", job, None))

    def end_earlier(self, job: str, at: float) -> None:
        assert job not in self._running
        self.calls.append(("end earlier", job, at))

    def points(self, job: str) -> list[float]:
        return [i for what, name, told in self.calls if (what, name) == ("add", job) for i in told]  # type: ignore[attr-defined]

    def order(self, job: str) -> list[str]:
        return [what for what, name, _ in self.calls if name == job]


class World:
    """A folder, a follower in a thread, and what it handed on. ``options`` are the follower's."""

    def __init__(self, path: Path, receiver: Recorder | None = None, **options: Any) -> None:
        self.path = path
        self.jobs = path / "jobs.d"
        self.jobs.mkdir()
        self.log = path / "train.log"
        self.receiver = receiver or Recorder()
        notices = Notices(logging.getLogger("test"))
        self.follower = Follower(JobsDirectory(self.jobs, path, notices), self.receiver, notices, **options)
        self._thread = threading.Thread(target=self.follower.run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self.follower.stop()
            self._thread.join(5)
            assert not self._thread.is_alive()
        self.follower.close()

    def job(self, name: str = "a", **values: object) -> Path:
        document = {"id": name, "spec": {}, "progress": {"log": str(self.log), "pattern": PATTERN}} | values
        path = self.jobs / f"{name}.json"
        path.with_suffix(".new").write_text(json.dumps(document))
        return path.with_suffix(".new").rename(path)

    def train(self, *steps: int) -> None:
        with self.log.open("a") as log:
            log.writelines(f"step {step} acc 0.5\n" for step in steps)
