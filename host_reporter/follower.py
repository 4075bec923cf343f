"""Follows the job files and what they lead to, and hands on what is new. The agent's main loop."""

from __future__ import annotations

import logging
import time
from typing import Protocol

from controller.wire import JobSpec
from host_reporter.backlog import Told
from host_reporter.inotify import Waker
from host_reporter.job_file import JobFile
from host_reporter.jobs_dir import Found, JobsDirectory
from host_reporter.notices import Notices
from host_reporter.parse import Ended, Event
from host_reporter.source import Source

LOOK_SECONDS = 1.0
"""Everything is looked at this often, whatever inotify says."""

UNSETTLED_SECONDS = 0.05
GAP_SECONDS = 0.02
"""Between two looks: a busy log does not make a busy agent."""

ABSENT_SECONDS = 5.0
"""A progress file that is not there for longer is told of."""

log = logging.getLogger(__name__)


class Receiver(Protocol):
    """Whom progress is handed to."""

    def declare(self, job: str, spec: JobSpec | None) -> None:
        """A job has begun, or its spec is another one."""

    def add(self, job: str, points: list[Told]) -> None:
        """A declared job has got on."""

    def end(self, job: str) -> None:
        """A declared job has ended."""


class Followed:
    """One job that is followed. ``declared``: the receiver knows its current run."""

    def __init__(self, file: JobFile, now: float) -> None:
        self.file = file
        self.source: Source = file.source()
        self.declared = False
        self.since = now

    def hand_on(self, events: list[Event], now: float, receiver: Receiver) -> None:
        """Declare, add and end what the events say. A point after an end begins a new run."""
        points: list[Told] = []
        for event in events:
            if isinstance(event, Ended):
                self._flush(points, receiver)
                if self.declared:
                    receiver.end(self.file.id)
                    self.declared = False
                points = []
            else:
                points.append(Told(event.iteration, now if event.time is None else event.time, event.metric))
        if points:
            self._flush(points, receiver)

    def _flush(self, points: list[Told], receiver: Receiver) -> None:
        if points:
            if not self.declared:
                receiver.declare(self.file.id, self.file.spec)
                self.declared = True
            receiver.add(self.file.id, points)


class Follower:
    """Looks at the jobs' folder and every job's progress, until ``stop``."""

    def __init__(self, directory: JobsDirectory, receiver: Receiver, notices: Notices) -> None:
        self._directory = directory
        self._receiver = receiver
        self._notices = notices
        self._waker = Waker()
        self._jobs: dict[str, Followed] = {}
        self._stopping = False

    def stop(self) -> None:
        """End ``run`` soon; may be called from a signal's handler."""
        self._stopping = True
        self._waker.wake()

    def run(self) -> None:
        """Follow until ``stop``; what the files hold by then is still handed on."""
        looked = float("-inf")
        noticed = True
        while not self._stopping:
            now = time.monotonic()
            if noticed or self._directory.unsettled or now - looked >= LOOK_SECONDS:
                self._look_at_folder()
            if now - looked >= LOOK_SECONDS:
                looked = now
                self._watch()
            more = self._look_at_progress()
            if noticed and not more:
                time.sleep(GAP_SECONDS)
            until = UNSETTLED_SECONDS if self._directory.unsettled else looked + LOOK_SECONDS - time.monotonic()
            noticed = self._waker.wait(0.0 if more else until)
        self._look_at_progress()
        for job in self._jobs.values():
            job.source.close()
        self._waker.close()

    def _look_at_folder(self) -> None:
        now = time.time()
        for change in self._directory.scan(now):
            if isinstance(change, Found):
                self._begin(change.job, now)
            else:
                self._end(change.job_id, now)

    def _begin(self, file: JobFile, now: float) -> None:
        known = self._jobs.get(file.id)
        if known is not None and (known.file.followed, known.file.progress) == (file.followed, file.progress):
            known.file = file
            if known.declared:
                self._receiver.declare(file.id, file.spec)
            return
        if known is not None:
            self._let_go(known)
        followed = self._jobs[file.id] = Followed(file, now)
        followed.declared = known.declared if known is not None else False
        self._waker.watch_file(file.followed)
        events = _latest_run(self._read(followed))
        # A job whose progress ends with its end is over since before we came: it is not begun again.
        over = bool(events) and isinstance(events[-1], Ended)
        if not followed.declared and not over:
            self._receiver.declare(file.id, file.spec)
            followed.declared = True
        if over and not followed.declared:
            log.info("job %s has ended already: %s", file.id, file.followed)
            return
        log.info("job %s: following %s", file.id, file.followed)
        followed.hand_on(events, now, self._receiver)

    def _end(self, job_id: str, now: float) -> None:
        job = self._jobs.pop(job_id, None)
        if job is None:
            return
        job.hand_on(self._read(job), now, self._receiver)
        problem = job.source.problem(final=True)
        if problem is not None:
            self._notices.say(f"progress {job_id}", f"job {job_id}: {problem}")
        if job.declared:
            self._receiver.end(job_id)
        self._let_go(job)
        log.info("job %s has ended: %d lines of progress, %d others", job_id, job.source.matched, job.source.unmatched)

    def _let_go(self, job: Followed) -> None:
        job.source.close()
        if not any(other.file.followed == job.file.followed for other in self._jobs.values() if other is not job):
            self._waker.forget(job.file.followed)

    @staticmethod
    def _read(job: Followed) -> list[Event]:
        """All that is there to read now."""
        found: list[Event] = []
        while True:
            events, more = job.source.poll()
            found += events
            if not more:
                return found

    def _look_at_progress(self) -> bool:
        """Hand on what is new; whether there may be more at once."""
        now = time.time()
        any_more = False
        for job_id, job in self._jobs.items():
            events, more = job.source.poll()
            any_more |= more
            if events:
                job.hand_on(events, now, self._receiver)
            problem = job.source.problem()
            if problem is None:
                self._notices.clear(f"progress {job_id}", f"job {job_id}: its progress is followed")
            elif now - job.since > ABSENT_SECONDS:
                self._notices.say(f"progress {job_id}", f"job {job_id}: {problem}")
        return any_more

    def _watch(self) -> None:
        """Watch what is at the paths now; what was renamed meanwhile is another file."""
        self._waker.watch_folder(self._directory.path)
        for job in self._jobs.values():
            self._waker.watch_file(job.file.followed)


def _latest_run(events: list[Event]) -> list[Event]:
    """Without the runs that were over before we came: a progress file may hold several runs of a job."""
    for i in range(len(events) - 2, -1, -1):
        if isinstance(events[i], Ended):
            return events[i + 1 :]
    return events
