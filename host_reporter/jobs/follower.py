"""The agent's main loop: it follows the job files and their progress files, and passes on what is new."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from host_reporter.jobs.followed import STAGE_SECONDS, Followed, Receiver
from host_reporter.jobs.job_file import JobFile, JobProcesses
from host_reporter.jobs.jobs_dir import JobFound, JobGone, JobsDirectory
from host_reporter.jobs.trials import Trials
from host_reporter.jobs.unclaimed import GRACE_SECONDS, UnclaimedProgress
from host_reporter.notices import Notices
from host_reporter.readers.match_limit import MatchLimit
from host_reporter.readers.waker import Waker

LOOK_SECONDS = 1.0
"""Look at everything this often, whatever inotify reports."""

UNSETTLED_SECONDS = 0.05
"""Look again after this time at a folder in which a file may just be being replaced."""

GAP_SECONDS = 0.02
"""Wait at least this long between two looks, so that a busy log does not make a busy agent."""

ABSENT_SECONDS = 5.0
"""Log a problem with a progress file that has lasted for longer than this."""

LAST_LOOK_SECONDS = 1.0
"""Read files for at most this long after the agent was told to stop. All that is read by then is reported."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a follower waits, in seconds: see ``LOOK_SECONDS``, ``ABSENT_SECONDS`` and so on."""

    look: float = LOOK_SECONDS
    absent: float = ABSENT_SECONDS
    last_look: float = LAST_LOOK_SECONDS
    grace: float = GRACE_SECONDS
    stage: float = STAGE_SECONDS


DEFAULT_TIMING = Timing()


class Follower:
    """Looks at the jobs' folder and every job's progress, until ``stop``. Call ``close`` at the end.

    Each look calls ``follow`` with the processes of the running jobs whose files name them. ``wall`` returns the time
    in seconds since the epoch.
    """

    def __init__(
        self,
        directory: JobsDirectory,
        receiver: Receiver,
        notices: Notices,
        *,
        follow: Callable[[Mapping[str, JobProcesses]], None] = lambda _processes: None,
        timing: Timing = DEFAULT_TIMING,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._timing = timing
        self._wall = wall
        self._follow = follow
        self._directory = directory
        self._receiver = receiver
        self._notices = notices
        self._unclaimed = UnclaimedProgress(directory.progress_dir, directory.path, notices, grace_seconds=timing.grace)
        self._trials = Trials(notices)
        self._waker = Waker()
        self._limit = MatchLimit()
        self._jobs: dict[str, Followed] = {}
        self._leaving: list[Followed] = []
        self._heard: deque[str] = deque()
        self._held: set[str] = set()
        self._stopping = False

    def stop(self) -> None:
        """End ``run`` soon. A signal handler may call this."""
        self._stopping = True
        self._waker.wake()

    def hold(self, jobs: Iterable[str]) -> None:
        """Note jobs of an earlier agent that the controller believes to run. Any thread may call this."""
        self._heard.extend(jobs)
        self._waker.wake()

    def close(self) -> None:
        """Free the descriptors. Call this after ``run``, and no ``stop`` after it."""
        self._waker.close()

    def run(self) -> None:
        """Follow until ``stop``. All that the files hold by then is still passed on."""
        looked = float("-inf")
        first = time.monotonic()
        noticed = True
        while not self._stopping:
            now = time.monotonic()
            if noticed or self._directory.unsettled or now - looked >= self._timing.look:
                self._look_at_folder()
            if now - looked >= self._timing.look:
                looked = now
                self._watch()
                leaving = {job.file.id for job in self._leaving}
                self._unclaimed.look(now, self._jobs.keys() | leaving | set(self._trials.jobs))
            if now >= self._trials.next_look():
                self._look_at_trials(now)
            more = self._look_at_progress()
            # At the first look a file may be missing while its editor replaces it.
            self._end_earlier(is_settled=looked - first >= self._timing.look)
            self._follow(
                {
                    job_id: job.file.processes
                    for job_id, job in self._jobs.items()
                    if job.declared and job.file.processes is not None
                }
            )
            if noticed and not more:
                time.sleep(GAP_SECONDS)
            due = min(looked + self._timing.look, self._trials.next_look()) - time.monotonic()
            until = UNSETTLED_SECONDS if self._directory.unsettled else due
            noticed = self._waker.wait(0.0 if more else until)
        last = time.monotonic() + self._timing.last_look
        self._end_what_is_gone(last)
        while self._look_at_progress(last) and time.monotonic() < last:
            pass
        for job in list(self._leaving):
            self._finish(job)
        for job in self._jobs.values():
            job.report_held(self._receiver)
            job.source.close()

    def _end_what_is_gone(self, last: float) -> None:
        """End the jobs whose files have gone by now. The next agent begins new ones."""
        while True:
            for change in self._directory.scan(time.monotonic(), self._wall()):
                if isinstance(change, JobGone):
                    self._end(change.job_id)
            if not self._directory.unsettled or time.monotonic() > last:
                return
            # Its editor may be replacing it.
            time.sleep(UNSETTLED_SECONDS)

    def _look_at_folder(self) -> None:
        for change in self._directory.scan(time.monotonic(), self._wall()):
            if isinstance(change, JobGone):
                self._end(change.job_id)
                self._apply_changes(self._trials.remove(change.job_id))
            elif change.job.trials is None:
                self._apply_changes(self._trials.remove(change.job.id))
                self._begin(change.job)
            else:
                self._end(change.job.id)
                self._apply_changes(self._trials.add(change.job))
                log.info("study %s: following its trials in %s", change.job.id, change.job.followed)
            if self._stopping:
                return

    def _look_at_trials(self, now: float) -> None:
        resting = {job_id for job_id, job in self._jobs.items() if job.is_resting}
        others = {job_id for job_id, job in self._jobs.items() if not job.file.is_trial}
        self._apply_changes(self._trials.scan(now, self._wall(), resting, others))

    def _apply_changes(self, changes: Iterable[JobFound | JobGone]) -> None:
        for change in changes:
            if isinstance(change, JobFound):
                self._begin(change.job)
            else:
                self._end(change.job_id)

    def _begin(self, file: JobFile) -> None:
        known = self._jobs.get(file.id)
        if known is not None and (known.file.followed, known.file.progress) == (file.followed, file.progress):
            known.file = file
            if known.declared:
                known.declare(self._receiver)
            return
        for job in [job for job in self._leaving if job.file.id == file.id]:
            self._finish(job)
        if known is not None:
            self._let_go(known)
        followed = self._jobs[file.id] = Followed(file, time.monotonic(), stage_seconds=self._timing.stage)
        if known is not None and known.declared:
            followed.declare(self._receiver)
        log.info("job %s: following %s", file.id, file.followed)
        self._waker.watch_file(file.followed)
        followed.source.aim()
        self._look_at(followed)
        # To read a long file takes a while; that its job runs is known before.
        if followed.is_catching_up and not followed.declared and not followed.source.seems_over(self._limit):
            followed.declare(self._receiver)

    def _end(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        if job is not None:
            # What comes after this moment is not waited for: a file may grow as fast as it is read.
            job.source.aim()
            self._leaving.append(job)
            self._look_at(job)

    def _end_earlier(self, *, is_settled: bool) -> None:
        """End the jobs of an earlier agent that were over, or had no file any more, when this agent began.

        ``is_settled`` says whether the folder was looked at more than once. A file that is not understood may belong to
        any job.
        """
        waiting = set()
        while self._heard:
            self._held.add(self._heard.popleft())
        # These trials are not read yet, and their files will show whether they have ended.
        to_come = frozenset(self._trials.waiting if self._held else ())
        for job_id in tuple(self._held):
            job = self._jobs.get(job_id)
            if job is not None:
                if job.is_catching_up and not job.declared:
                    continue
                if job.over_at is not None:
                    self._receiver.end_earlier(job_id, job.over_at)
            elif not is_settled or job_id in to_come or any(leaving.file.id == job_id for leaving in self._leaving):
                continue
            elif not self._directory.is_understood:
                waiting.add(job_id)
                continue
            else:
                log.info("job %s has ended already: it no longer has a job file", job_id)
                self._receiver.end_earlier(job_id, self._wall())
            self._held.discard(job_id)
        if waiting:
            names = ", ".join(sorted(waiting)[:20])
            self._notices.say("held", f"no job file here is known of {names}: ended when all files here are understood")
        else:
            self._notices.clear("held")

    def _finish(self, job: Followed) -> None:
        self._leaving.remove(job)
        job_id = job.file.id
        job.receive(job.source.rest(self._limit), self._wall(), self._receiver)
        problem = job.source.problem(final=True)
        if problem is not None:
            self._notices.say(f"progress {job_id}", f"job {job_id}: {problem}")
        job.end(self._receiver)
        self._let_go(job)
        log.info("job %s has ended: %d lines of progress, %d others", job_id, job.source.matched, job.source.unmatched)

    def _let_go(self, job: Followed) -> None:
        job.source.close()
        others = (*self._jobs.values(), *self._leaving)
        if not any(other.file.followed == job.file.followed for other in others if other is not job):
            self._waker.forget(job.file.followed)

    def _look_at_progress(self, last: float | None = None) -> bool:
        """Pass on what is new until ``last``, also during a stop. Returns whether there may be more at once."""
        any_more = False
        for job in (*self._jobs.values(), *self._leaving):
            if self._stopping and (last is None or time.monotonic() > last):
                return False
            any_more |= self._look_at(job)
        return any_more

    def _look_at(self, job: Followed) -> bool:
        """Pass on a part of what is new of one job. Returns whether there may be more at once."""
        job_id = job.file.id
        events, more = job.source.poll(self._limit)
        wall = self._wall()
        job.receive(events, wall, self._receiver)
        if job.is_catching_up and job.source.is_there and not job.caught_up(wall, self._receiver):
            log.info("job %s has ended already: %s", job_id, job.file.followed)
        if job.complaint is not None:
            self._notices.say(f"belief {job_id}", f"job {job_id}: {job.complaint}")
        problem = job.source.problem()
        if problem is None:
            self._notices.clear(f"progress {job_id}", f"job {job_id}: its progress is followed")
            job.report_unread(None, self._receiver)
        elif job.source.has_begun or job.source.is_costly or time.monotonic() - job.since > self._timing.absent:
            self._notices.say(f"progress {job_id}", f"job {job_id}: {problem}")
            job.report_unread(problem, self._receiver)
        if job in self._leaving and job.source.is_there:
            self._finish(job)
        return more

    def _watch(self) -> None:
        """Watch the files that are at the paths now, since a file may have been replaced."""
        self._waker.watch_folder(self._directory.path)
        for folder in self._trials.folders:
            self._waker.watch_folder(folder)
        for job in self._jobs.values():
            self._waker.watch_file(job.file.followed)
