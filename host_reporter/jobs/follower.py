"""The agent's main loop: it follows job files and found jobs and their progress, and passes on what is new."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from host_reporter.jobs.followed import STAGE_SECONDS, Followed
from host_reporter.jobs.found.found_jobs import FoundJobs
from host_reporter.jobs.found.job import FoundJob
from host_reporter.jobs.job import Job, JobFound, JobGone, JobProcesses
from host_reporter.jobs.job_file import JobFile
from host_reporter.jobs.jobs_dir import JobsDirectory
from host_reporter.jobs.receivers import Receiver
from host_reporter.jobs.studies.trials import Trials
from host_reporter.jobs.turns import ROUND_SECONDS, Turns
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
    """How long a follower waits and reads, in seconds: see ``LOOK_SECONDS``, ``ABSENT_SECONDS`` and so on."""

    look: float = LOOK_SECONDS
    absent: float = ABSENT_SECONDS
    last_look: float = LAST_LOOK_SECONDS
    grace: float = GRACE_SECONDS
    stage: float = STAGE_SECONDS
    round: float = ROUND_SECONDS


DEFAULT_TIMING = Timing()


class Follower:
    """Looks at the jobs' folder, at ``found`` jobs and every job's progress, until ``stop``. Call ``close`` at the end.

    Each look calls ``follow`` with the processes of the running jobs, as far as they are known. ``wall`` returns the
    time in seconds since the epoch, and ``beat`` is called at each turn.
    """

    def __init__(
        self,
        directory: JobsDirectory,
        receiver: Receiver,
        notices: Notices,
        *,
        found: FoundJobs | None = None,
        follow: Callable[[Mapping[str, JobProcesses]], None] = lambda _processes: None,
        timing: Timing = DEFAULT_TIMING,
        wall: Callable[[], float] = time.time,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._timing = timing
        self._wall = wall
        self._beat = beat
        self._follow = follow
        self._found = found
        self._directory = directory
        self._receiver = receiver
        self._notices = notices
        self._unclaimed = UnclaimedProgress(directory.progress_dir, directory.path, notices, grace_seconds=timing.grace)
        self._trials = Trials(notices)
        self._waker = Waker()
        self._limit = MatchLimit()
        self._jobs: dict[str, Followed] = {}
        self._leaving: list[Followed] = []
        self._turns: Turns[Followed] = Turns(lambda job: job.user, round_seconds=timing.round)
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
            self._beat()
            self._turns.begin()
            now = time.monotonic()
            if noticed or self._directory.unsettled or now - looked >= self._timing.look:
                self._look_at_folder()
            if now - looked >= self._timing.look:
                looked = now
                self._watch()
                self._look_at_found(now)
                leaving = {job.job.id for job in self._leaving}
                claimed = self._found.claimed if self._found is not None else set()
                self._unclaimed.look(now, self._jobs.keys() | leaving | claimed | set(self._trials.jobs))
            if now >= self._trials.next_look():
                self._look_at_trials(now)
            more = self._look_at_progress()
            # At the first look a file may be missing while its editor replaces it.
            self._end_earlier(is_settled=looked - first >= self._timing.look)
            self._follow(
                {
                    job_id: job.job.processes
                    for job_id, job in self._jobs.items()
                    if job.declared and job.job.processes is not None
                }
            )
            if noticed and not more:
                time.sleep(GAP_SECONDS)
            due = min(looked + self._timing.look, self._trials.next_look()) - time.monotonic()
            until = UNSETTLED_SECONDS if self._directory.unsettled else due
            noticed = self._waker.wait(0.0 if more else until)
        last = time.monotonic() + self._timing.last_look
        self._end_what_is_gone(last)
        self._turns.begin()
        while self._look_at_progress(last) and time.monotonic() < last:
            self._turns.begin()
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
            elif not isinstance(change.job, JobFile) or change.job.trials is None:
                self._apply_changes(self._trials.remove(change.job.id))
                self._begin(change.job)
            else:
                self._end(change.job.id)
                self._apply_changes(self._trials.add(change.job))
                log.info("study %s: following its trials in %s", change.job.id, change.job.followed)
            if self._stopping:
                return

    def _look_at_found(self, now: float) -> None:
        if self._found is not None:
            files = [job.job for job in self._jobs.values() if not isinstance(job.job, FoundJob)]
            self._apply_changes(self._found.scan(now, self._wall(), files))

    def _look_at_trials(self, now: float) -> None:
        resting = {job_id for job_id, job in self._jobs.items() if job.is_resting}
        trials = {job_id for job_id, job in self._jobs.items() if isinstance(job.job, JobFile) and job.job.is_trial}
        others = self._jobs.keys() - trials
        self._apply_changes(self._trials.scan(now, self._wall(), resting, others))

    def _apply_changes(self, changes: Iterable[JobFound | JobGone]) -> None:
        for change in changes:
            if isinstance(change, JobFound):
                self._begin(change.job)
            else:
                self._end(change.job_id)

    def _begin(self, job: Job) -> None:
        known = self._jobs.get(job.id)
        if known is not None and known.job.progress_key == job.progress_key:
            known.job = job
            if known.declared:
                known.declare(self._receiver)
            return
        for leaving in [leaving for leaving in self._leaving if leaving.job.id == job.id]:
            self._finish(leaving)
        if known is not None:
            self._let_go(known)
        followed = self._jobs[job.id] = Followed(job, time.monotonic(), stage_seconds=self._timing.stage)
        if known is not None and known.declared:
            followed.declare(self._receiver)
        log.info("job %s: following %s", job.id, job.followed or "its traffic alone")
        if job.followed is not None:
            self._waker.watch_file(job.followed)
        followed.source.aim()
        if not self._turns.is_over:
            self._look_at(followed)
        # To read a long file takes a while; that its job runs is known before.
        is_over = not job.is_running and followed.source.seems_over(self._limit)
        if followed.is_catching_up and not followed.declared and not is_over:
            followed.declare(self._receiver)

    def _end(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        if job is not None:
            # What comes after this moment is not waited for: a file may grow as fast as it is read.
            job.source.aim()
            self._leaving.append(job)
            if not self._turns.is_over:
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
            elif not is_settled or job_id in to_come or any(leaving.job.id == job_id for leaving in self._leaving):
                continue
            elif self._found is not None and not self._found.is_settled:
                # Its processes may be found in a moment.
                continue
            elif not self._directory.is_understood:
                waiting.add(job_id)
                continue
            else:
                log.info("job %s has ended already: it has neither a job file nor processes", job_id)
                self._receiver.end_earlier(job_id, self._wall())
            self._held.discard(job_id)
        if waiting:
            names = ", ".join(sorted(waiting)[:20])
            self._notices.say("held", f"no job file here is known of {names}: ended when all files here are understood")
        else:
            self._notices.clear("held")

    def _finish(self, job: Followed) -> None:
        self._leaving.remove(job)
        job_id = job.job.id
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
        followed = job.job.followed
        if followed is not None and not any(other.job.followed == followed for other in others if other is not job):
            self._waker.forget(followed)

    def _look_at_progress(self, last: float | None = None) -> bool:
        """Pass on what is new until ``last``, also during a stop. Returns whether there may be more at once."""
        any_more, looked = False, 0
        jobs = (*self._jobs.values(), *self._leaving)
        for job in self._turns.of(jobs):
            if self._stopping and (last is None or time.monotonic() > last):
                return False
            any_more |= self._look_at(job)
            looked += 1
        return any_more or looked < len(jobs)

    def _look_at(self, job: Followed) -> bool:
        """Pass on a part of what is new of one job. Returns whether there may be more at once."""
        job_id = job.job.id
        events, more = job.source.poll(self._limit)
        wall = self._wall()
        job.receive(events, wall, self._receiver)
        if job.is_catching_up and job.source.is_there and not job.caught_up(wall, self._receiver):
            log.info("job %s has ended already: %s", job_id, job.job.followed)
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
            if job.job.followed is not None:
                self._waker.watch_file(job.job.followed)
