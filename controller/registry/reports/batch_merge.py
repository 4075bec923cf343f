"""Brings a host's batch into the registry's jobs: merges it part by part, and journals and ends jobs as it goes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace

from controller.declared.batch import Batch, FlowPart, JobPart, TrafficPart
from controller.pieces import Steps
from controller.registry.job.record import JobRecord
from controller.registry.jobs import Jobs
from controller.registry.parts import end_if_over
from controller.registry.reports.part_merge import (
    BatchOrigin,
    Known,
    latest_traffic,
    merge_counts,
    merge_job_part,
    merge_links,
    refusal_of_flow,
)
from controller.registry.reports.part_reports import Counted, counted
from controller.registry.triggers import Trigger
from controller.registry.watch import Watch
from controller.wire import MAX_BATCH_LINKS, ReportRefusal


@dataclass
class BatchOutcome:
    """What a batch brought.

    ``refused`` and ``left_out`` go into the answer. ``triggers`` are the plans that cannot wait for the period.
    ``reported`` are the jobs that the batch told something of. ``links`` counts the host's links over all jobs; None
    before it is needed.
    """

    refused: list[ReportRefusal] = field(default_factory=list)
    left_out: list[ReportRefusal] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)
    reported: dict[str, JobRecord] = field(default_factory=dict)
    rerouted: dict[str, JobRecord] = field(default_factory=dict)
    measured: dict[str, JobRecord] = field(default_factory=dict)
    links: int | None = None

    def refuse(self, job: str, reason: str) -> None:
        """Note that a part is not merged."""
        self.refused.append(ReportRefusal(job=job, reason=reason))

    def leave_out(self, job: str, reason: str) -> None:
        """Note that something in a part is not believed."""
        self.left_out.append(ReportRefusal(job=job, reason=reason))


class Reports:
    """Merges batches into ``jobs``. ``hosts`` are those in the settings, and ``endpoints`` their interfaces."""

    def __init__(self, jobs: Jobs, watch: Watch, hosts: Container[str], endpoints: Container[str]) -> None:
        self._jobs = jobs
        self._watch = watch
        self._known = Known(hosts, endpoints, jobs.owners)

    def merge_in_steps(self, batch: Batch, origin: BatchOrigin) -> Steps[BatchOutcome]:
        """Merge a batch and journal what it brought; yields where others may go on.

        A part that cannot be merged is refused, and the rest is merged.
        """
        outcome = BatchOutcome()
        for part in batch.jobs:
            yield from self._merge_job(part, origin, outcome)
        for flow in batch.flows:
            self._merge_flow(flow, origin, outcome)
            yield
        for traffic in latest_traffic(batch.traffic):
            yield from self._merge_traffic(traffic, origin, outcome)
        # Once a job, not once a part: a batch may name a job many times.
        for job in outcome.measured.values():
            yield from job.measure()
            job.check_declaration()
        for job in outcome.reported.values():
            yield from job.prepare_texts()
            self._jobs.save_tally(job)
        for job in outcome.rerouted.values():
            self._jobs.save_seen(job)
            yield
        return outcome

    def _merge_job(self, part: JobPart, origin: BatchOrigin, outcome: BatchOutcome) -> Steps[None]:
        job = self._find(part.job, origin, outcome)
        if job is None:
            yield
            return
        counts = Counted(part) if job.parts is None else counted(job.parts, origin.host, part, origin.sent_at)
        merged = yield from merge_job_part(job, counts.news, origin)
        self._jobs.save_points(job, merged.new_points, is_thinned=merged.is_thinned)
        for reason in (*merged.refused, *filter(None, [counts.refused])):
            outcome.refuse(job.id, reason)
        for reason in (*merged.left_out, *filter(None, [counts.left_out])):
            outcome.leave_out(job.id, reason)
        if job.ended_at is None and self._jobs.has(job):
            if self._watch.crosses(job, merged.previous):
                outcome.triggers.append(Trigger.TARGET_CROSSED)
            if merged.ended_at is not None:
                self._jobs.end(job, merged.ended_at)
                outcome.triggers.append(Trigger.END)
            elif counts.ends_part:
                self._end_part(job, part, origin, outcome)
        outcome.reported[job.id] = job
        yield

    def _end_part(self, job: JobRecord, news: JobPart, origin: BatchOrigin, outcome: BatchOutcome) -> None:
        """Note that a job runs no more on the host, and so perhaps nowhere."""
        ended_at = origin.controller_time(news.as_of)
        known = job.parts.get(origin.host) if job.parts is not None else None
        if known is None or not known.is_running:
            return
        if not job.is_of_run(ended_at):
            outcome.refuse(job.id, "the end is from before this run of the job; is the host's clock right?")
            return
        job.reported_by[origin.host] = False
        self._jobs.put_part(job, replace(known, over="ended", over_at=ended_at))
        if end_if_over(self._jobs, job):
            outcome.triggers.append(Trigger.END)

    def _merge_flow(self, part: FlowPart, origin: BatchOrigin, outcome: BatchOutcome) -> None:
        job = self._find(part.job, origin, outcome)
        if job is None:
            return
        reason = refusal_of_flow(job, part.flow, origin.host, self._known)
        if reason is not None:
            outcome.refuse(job.id, reason)
        elif job.merge_flow(part.flow):
            self._note_rerouted(job, outcome)

    def _merge_traffic(self, part: TrafficPart, origin: BatchOrigin, outcome: BatchOutcome) -> Steps[None]:
        job = self._find(part.job, origin, outcome)
        yield
        if job is None:
            return
        if not job.is_of_run(origin.controller_time(part.as_of)):
            outcome.refuse(job.id, "its connections are from before this run of the job; is the host's clock right?")
            return
        if origin.is_current:
            yield from self._merge_links(job, part, origin, outcome)
        merge_counts(job, part, origin, self._known)
        outcome.measured[job.id] = outcome.reported[job.id] = job

    def _merge_links(
        self, job: JobRecord, part: TrafficPart, origin: BatchOrigin, outcome: BatchOutcome
    ) -> Steps[None]:
        before, room = job.connections.found.links_of(origin.host), 0
        if part.links is not None:
            if outcome.links is None:
                # Counted once a batch: there may be as many jobs as parts.
                outcome.links = self._jobs.links_of(origin.host)
            room = MAX_BATCH_LINKS - (outcome.links - before)
        merged = yield from merge_links(job, part, origin, self._known, room=room)
        if outcome.links is not None:
            outcome.links += job.connections.found.links_of(origin.host) - before
        for reason in merged.left_out:
            outcome.leave_out(job.id, reason)
        if merged.is_changed:
            self._note_rerouted(job, outcome)

    @staticmethod
    def _note_rerouted(job: JobRecord, outcome: BatchOutcome) -> None:
        outcome.rerouted[job.id] = job
        if job.ended_at is None:
            outcome.triggers.append(Trigger.NEW_FLOWS)

    def _find(self, job_id: str, origin: BatchOrigin, outcome: BatchOutcome) -> JobRecord | None:
        """Returns the job if the host takes part in it; else refuses the part."""
        job = self._jobs.get(job_id)
        if job is None or origin.host not in job.hosts:
            # The same words for both: an agent with a host's token must not learn of the jobs of others.
            reason = f"unknown job on {origin.host}; register it first, with a task, flow or demand there"
            outcome.refuse(job_id, reason)
            return None
        return job
