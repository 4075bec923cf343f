"""One job that is followed: what was reported of it, and what is to be reported next."""

from __future__ import annotations

import re
import time
from dataclasses import replace

from controller.model import Progress
from controller.wire import NAME_PATTERN, JobSpec
from controller.wire.parts import PartSpec
from controller.wire.reports import MAX_UNREAD
from host_reporter.jobs.described import described_spec
from host_reporter.jobs.epochs import EpochScale
from host_reporter.jobs.job import Job, Spec
from host_reporter.jobs.naming import named, user_of
from host_reporter.jobs.passed import PassedIterations
from host_reporter.jobs.receivers import Receiver
from host_reporter.jobs.studies.stages import in_stage
from host_reporter.readers.log_source import ProgressSource
from host_reporter.readers.parse import Described, Diverged, Ended, Event, Point, Staged, Targeted, without_names
from host_reporter.readers.plausible import PlausibilityFilter
from host_reporter.readers.points import MAX_PENDING, thin

STAGE_SECONDS = 1.0
"""Report a job's stage or target at most this often, because each report is a registration and triggers a plan."""

_NAME = re.compile(NAME_PATTERN)


class Followed:
    """A job and its progress. ``declared`` says whether the receiver knows its current run; ``since`` is its beginning.

    At first it catches up with the content of the progress file. That may hold several runs, and only the last one is
    reported. ``complaint`` is the first implausible part of the progress, if any. ``over_at`` is the end of the last
    run, in seconds since the epoch, if that was before the agent began and no other run has begun since; else None.

    A stage in the progress becomes a stage of the job file's study, so whoever writes the progress cannot name another
    study. A stage is reported by a new registration of the job, with the stage and its last iteration. Points before
    that registration wait for it, because they may be beyond the end of the last stage. A target in the progress is
    reported in the same way, unless the job file's spec has one. So are the metric, its direction, the length of the
    run and its unit where the job file leaves them open and the progress describes them. Epochs become iterations where
    the spec declares these (``EpochScale``).
    """

    def __init__(self, job: Job, since: float, *, stage_seconds: float = STAGE_SECONDS) -> None:
        self._stage_seconds = stage_seconds
        self.job = job
        self.since = since
        self.source: ProgressSource = job.source()
        self.declared = False
        self.complaint: str | None = None
        self.over_at: float | None = None
        self._filter, self._passed = PlausibilityFilter(), PassedIterations()
        self._earlier: list[Progress] | None = []
        self._is_over = False
        self._has_diverged = self._is_divergence_reported = False
        self._staged = Staged(None)
        self._target: float | None = None
        self._described = Described()
        self._scale = EpochScale()
        self._unread: str | None = None
        self._unread_lines = 0
        self._is_spec_reported = True
        self._spec_reported_at = float("-inf")
        self._held: list[Progress] = []
        self._user: str | None = None
        self._has_ended = False
        self._begun_again: float | None = None

    @property
    def user(self) -> str | None:
        """Whose job it is, as far as that is known: the user of its spec, else the one who writes its progress."""
        spec = self.job.spec
        return spec.user if spec is not None and spec.user is not None else self._user

    @property
    def is_resting(self) -> bool:
        """Whether its last run is over, as far as the progress was read."""
        return not self.declared and not self.is_catching_up

    @property
    def is_catching_up(self) -> bool:
        """Whether it still reads progress from before the agent began to follow it."""
        return self._earlier is not None

    def declare(self, receiver: Receiver) -> None:
        """Report that its run has begun, or its new spec."""
        if not self.declared and self._has_ended:
            self._begun_again = time.time()
        self._user = self._present_user()
        receiver.declare(self.job.id, self.spec)
        self.declared = self._is_spec_reported = True
        self.over_at = None

    @property
    def spec(self) -> Spec | None:
        """The spec of the job, with its target, in its present stage."""
        spec, study = self.job.spec, self.job.study
        if spec is None:
            return None
        spec = named(self._described_spec(spec, self._described), study, self._user)
        if spec.target is None and self._target is not None:
            spec = type(spec).model_construct(**dict(spec) | {"target": self._target})
        if isinstance(spec, PartSpec) and self._begun_again is not None:
            # The processes are those of the run before.
            spec = PartSpec.model_construct(**dict(spec) | {"arrival": self._begun_again})
        if study is None or self._staged.stage is None or not isinstance(spec, JobSpec):
            return spec
        staged = self._staged
        return in_stage(spec, f"{study}.{staged.stage}", staged.until, staged.rungs_left)

    def _described_spec(self, spec: Spec, described: Described) -> Spec:
        is_in_epochs = self._scale.counts_epochs(_declared_iterations(spec), described)
        return described_spec(spec, described, counts_epochs=is_in_epochs)

    def report_stage(self, receiver: Receiver) -> None:
        """Report a new stage or target if the last report of one is old enough. Call this regularly."""
        now = time.monotonic()
        if self.declared and not self._is_spec_reported and now - self._spec_reported_at >= self._stage_seconds:
            self._report_held(receiver)

    def report_held(self, receiver: Receiver) -> None:
        """Report at once what waits for the next report of a stage or a target, because the agent stops."""
        if self.declared and not self._is_spec_reported:
            self._report_held(receiver)

    def report_unread(self, problem: str | None, receiver: Receiver) -> None:
        """Report that its progress cannot be read, and how many lines, or that it can again.

        The count is reported again when it has doubled. Names that stand in the output stay on this host.
        """
        told = without_names(problem) if problem is not None else None
        count = self.source.unmatched
        is_known = told == self._unread and (told is None or count < 2 * max(self._unread_lines, 1))
        if not self.declared or is_known:
            return
        self._unread, self._unread_lines = told, count
        reason = f"{told} ({count} line{'' if count == 1 else 's'} so far)" if told is not None else ""
        receiver.note_unread(self.job.id, "".join(filter(str.isprintable, reason))[:MAX_UNREAD])

    def end(self, receiver: Receiver) -> None:
        """Report that its run has ended, if it had begun."""
        if self.declared:
            if self._held:
                self._report_held(receiver)
            receiver.end(self.job.id)
            self._has_ended = True
        self.declared = False
        self._begin_run()

    def receive(self, events: list[Event], wall: float, receiver: Receiver) -> None:
        """Handle the new events of its file. ``wall`` is the time now, in seconds since the epoch."""
        if self._earlier is not None:
            self._note(events, wall, self._earlier)
            self._earlier = thin(self._earlier, MAX_PENDING)
        else:
            self._hand_on(events, wall, receiver)
        self.report_stage(receiver)

    def caught_up(self, wall: float, receiver: Receiver) -> bool:
        """Report the last run after all of the file was read. Returns False if that run was over already."""
        points, self._earlier = self._earlier or [], None
        if self._is_over and self.job.is_running:
            # What the file holds is of a run before.
            self._begin_run()
            points, self._is_over = [], False
        # A job that this agent never declared, and whose progress shows its end, is not declared again.
        if self._is_over and not self.declared:
            self._begin_run()
            # The end may have come long after the last point, but not after its file was written, nor after now.
            last = points[-1].time if points else 0.0
            self.over_at = min(max(last, self.source.modified or wall), wall)
            return False
        if not self.declared:
            self.declare(receiver)
        self._hand_on_points(points, receiver)
        if self._is_over:
            self.end(receiver)
        return True

    def _note(self, events: list[Event], wall: float, points: list[Progress]) -> None:
        for event in events:
            if self._is_over:
                # This begins another run.
                self._is_over = False
                self._begin_run()
                points.clear()
            if isinstance(event, Ended):
                self._is_over = True
            elif isinstance(event, Staged):
                self._stage(event)
            elif isinstance(event, Targeted):
                self._declare_target(event)
            elif isinstance(event, Described):
                self._describe(event, points)
            elif isinstance(event, Diverged):
                self._has_diverged = True
            else:
                points += self._plausible_points(event, wall)
                self._has_diverged |= event.diverged

    def _hand_on(self, events: list[Event], wall: float, receiver: Receiver) -> None:
        """Declare, add and end what the events say. A point after an end begins a new run."""
        points: list[Progress] = []
        for event in events:
            if isinstance(event, Ended):
                self._hand_on_points(points, receiver)
                self.end(receiver)
                points = []
            elif isinstance(event, Staged):
                self._stage(event)
                if not self.declared and event.stage is not None:
                    # A job that is in a stage has begun.
                    self.declare(receiver)
            elif isinstance(event, Targeted):
                self._declare_target(event)
            elif isinstance(event, Described):
                self._describe(event, points)
            elif isinstance(event, Diverged):
                self._has_diverged = True
            else:
                points += self._plausible_points(event, wall)
                self._has_diverged |= event.diverged
        self._hand_on_points(points, receiver)

    def _hand_on_points(self, points: list[Progress], receiver: Receiver) -> None:
        """Add points, and report once that the run has diverged."""
        self._add(points, receiver)
        if self._has_diverged and not self._is_divergence_reported:
            if not self.declared:
                self.declare(receiver)
            receiver.diverge(self.job.id)
            self._is_divergence_reported = True

    @property
    def _length(self) -> float | None:
        """Iterations of the run, or up to the end of its stage, if known."""
        spec = self.job.spec
        if self._staged.until is not None:
            return self._staged.until
        if spec is not None and spec.iterations is not None:
            return spec.iterations
        return self._described.iterations

    @property
    def _is_user_news(self) -> bool:
        """Whether it has a user of whom the receiver does not know."""
        spec = self.job.spec
        return spec is not None and spec.user is None and self._user is None and self._present_user() is not None

    def _present_user(self) -> str | None:
        """Returns the user who writes its progress, as far as there is any."""
        return user_of(self.job.followed) if self.job.followed is not None else None

    def _begin_run(self) -> None:
        self._filter, self._passed = PlausibilityFilter(), PassedIterations()
        self._staged, self._target, self._is_spec_reported = Staged(None), None, True
        self._described, self._scale = Described(), EpochScale()
        self._unread = None
        self._has_diverged = self._is_divergence_reported = False
        self._spec_reported_at = float("-inf")
        self._held = []

    def _report_held(self, receiver: Receiver) -> None:
        self._spec_reported_at = time.monotonic()
        self.declare(receiver)
        held, self._held = self._held, []
        self._add(held, receiver)

    def _stage(self, staged: Staged) -> None:
        study = self.job.study
        if study is None or self.job.spec is None:
            what = "study (the study's name)" if study is None else "spec"
            self.complaint = self.complaint or f"its stages are not reported: its job file has no {what}"
        elif staged.stage is not None and not _NAME.fullmatch(f"{study}.{staged.stage}"):
            self.complaint = (
                self.complaint or f"{study}.{staged.stage} can be no stage: a name has 63 characters at most"
            )
        elif staged != self._staged:
            self._staged, self._is_spec_reported = staged, False

    def _declare_target(self, targeted: Targeted) -> None:
        if self.job.spec is None:
            self.complaint = self.complaint or "its target is not reported: its job file has no spec"
        elif targeted.target != self._target:
            self._target = targeted.target
            self._is_spec_reported &= self.job.spec.target is not None

    def _describe(self, described: Described, points: list[Progress]) -> None:
        """Note what the progress says of the job. It is no news where the job file says all of it.

        If its metric is another one than before, the values of the points so far are none of it.
        """
        before, self._described = self._described, described
        spec = self.job.spec
        if spec is None or (known := self._described_spec(spec, before)) == (
            found := self._described_spec(spec, described)
        ):
            return
        self._is_spec_reported = False
        if before.metric is not None and known.metric != found.metric:
            points[:] = map(_without_metric, points)
            self._held = list(map(_without_metric, self._held))

    def _add(self, points: list[Progress], receiver: Receiver) -> None:
        if points:
            if not self.declared or (self._is_spec_reported and self._is_user_news):
                self.declare(receiver)
            if self._is_spec_reported:
                receiver.add(self.job.id, points)
            else:
                self._held = thin(self._held + points, MAX_PENDING)

    def _plausible_points(self, point: Point, wall: float) -> tuple[Progress, ...]:
        iteration = point.iteration * self._scale.factor(_declared_iterations(self.job.spec), self._described)
        time = self._passed.time_of(point.iteration, wall) if point.time is None else point.time
        progress = Progress(iteration, time, point.metric)
        believed = self._filter.accept(progress, self._length)
        self.complaint = self.complaint or self._filter.complaint
        return believed


def _declared_iterations(spec: Spec | None) -> float | None:
    """Returns the length that a spec declares in iterations."""
    return None if spec is None or spec.unit == "epoch" else spec.iterations


def _without_metric(point: Progress) -> Progress:
    return replace(point, metric=None)
