"""One batch of a host's report, merged into the jobs that it tells of: points, bytes sent, ends, flows.

All merges are monotone and idempotent. What cannot be taken is refused part by part, the rest is taken.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Container, Generator, Iterable, Mapping

from controller.declared.batch import Batch, FlowTold, JobTold, Point, TrafficTold
from controller.declared.job_flows import FlowKey
from controller.journal.store import Store
from controller.model import Progress
from controller.registry.history import MAX_POINTS
from controller.registry.job_record import JobRecord
from controller.registry.job_traffic import both_ways
from controller.registry.records import as_points, save_seen, save_tally
from controller.registry.triggers import Cause
from controller.registry.watch import Watch
from controller.wire import MAX_BATCH_LINKS, MAX_BYTES, ReportRefusal

LOG = logging.getLogger("trainyard.registry")
MAX_ROWS = 4 * MAX_POINTS
"""Points of a job that the journal is given before it is given only those that are kept."""
POINTS_A_STEP = 250
LINKS_A_STEP = 500


class Merge:
    """A batch of ``host`` while it is merged.

    ``is_present``: it is of the agent that is there now, not a late one of an agent before it. ``offset``: what to add
    to the host's clock; ``now``: the controller's; ``hosts``: those that are known; ``owner`` of a flow: the job whose
    it is; ``end``: called with a job that has ended, and when. ``told`` are the jobs of which the batch brought
    something; ``reasons``: what cannot wait for the period.
    """

    def __init__(
        self,
        host: str,
        report: Batch,
        *,
        is_present: bool,
        offset: float,
        now: float,
        received_at: float,
        jobs: Mapping[str, JobRecord],
        hosts: Container[str],
        owner: Callable[[FlowKey], str | None],
        end: Callable[[JobRecord, float], None],
        store: Store,
        watch: Watch,
    ) -> None:
        self.refused: list[ReportRefusal] = []
        self.left_out: list[ReportRefusal] = []
        self.reasons: list[str] = []
        self.told: dict[str, JobRecord] = {}
        self._rerouted: dict[str, JobRecord] = {}
        self._measured: dict[str, JobRecord] = {}
        self._links: int | None = None
        self._host = host
        self._report = report
        self._is_present = is_present
        self._offset = offset
        self._now = now
        self._received_at = received_at
        self._jobs = jobs
        self._hosts = hosts
        self._owner = owner
        self._end = end
        self._store = store
        self._watch = watch

    def in_steps(self) -> Generator[None, None, None]:
        """Merge it, and note in the journal what it brought; yields where others may go on."""
        for part in self._report.jobs:
            yield from self._take_part(part)
        for seen in self._report.flows:
            self._take_flow(seen)
            yield
        for traffic in _latest(self._report.traffic):
            yield from self._take_traffic(traffic)
        # Once a job, not once a part: a batch may name a job many times.
        for job in self._measured.values():
            yield from job.measure()
            self._cross_check(job)
        for job in self.told.values():
            yield from job.prepare_texts()
            if self._is_there(job):
                save_tally(self._store, job)
        for job in self._rerouted.values():
            if self._is_there(job):
                save_seen(self._store, job)
            yield

    def _is_there(self, job: JobRecord) -> bool:
        """Whether a job has not been removed meanwhile."""
        return self._jobs.get(job.id) is job

    def _take_part(self, part: JobTold) -> Generator[None, None, None]:
        job = self._accepting(part.job)
        if job is None:
            yield
            return
        # Of an earlier run of the same job nothing is taken, however late it comes.
        known_at = self._by_our_clock(part.as_of)
        is_known_now = job.is_of_run(known_at)
        before = job.history.last_measured
        taken = yield from self._take_points(job, part.points)
        if stale := len(part.points) - taken:
            self._refuse(job.id, f"{stale} points are from before this run of the job; is the host's clock right?")
        if not is_known_now and (part.ended or part.sent_bytes is not None):
            what = "the end" if part.ended else "the count of bytes"
            self._refuse(job.id, f"{what} is from before this run of the job; is the host's clock right?")
        if part.sent_bytes is not None and is_known_now:
            # Two counts of a host add up.
            job.merge_sent(self._host, f"{self._report.session}:{part.counter}", part.sent_bytes)
        # Who only counts a job's bytes does not know how it fares.
        is_witness = part.followed or part.ended or part.sent_bytes is None
        if taken or (is_witness and is_known_now):
            job.told_by[self._host] = part.followed or job.told_by.get(self._host, False)
        job.last_report = self._now if job.last_report is None else max(job.last_report, self._now)
        job.received_at = self._received_at
        if job.ended_at is None and self._is_there(job):
            if self._watch.crosses(job, before):
                self.reasons.append(Cause.TARGET_CROSSED)
            if part.ended and is_known_now:
                self._end(job, known_at)
                self.reasons.append(Cause.END)
        self.told[job.id] = job
        yield

    def _take_points(self, job: JobRecord, told: Collection[Point]) -> Generator[None, None, int]:
        """Merge points, and tell how many are of this run."""
        strides = job.history.strides
        taken = beyond = 0
        new: list[Progress] = []
        for number, fields in enumerate(told):
            point = Progress(*fields)
            if job.is_of_run(self._by_our_clock(point.time)):
                taken += 1
                beyond += not job.believes(point)
                if job.merge_point(point):
                    new.append(point)
            if number % POINTS_A_STEP == POINTS_A_STEP - 1:
                yield
        if beyond:
            self._leave_out_points(job, beyond)
        job.rows += len(new)
        if not self._is_there(job):
            return taken
        if job.history.strides != strides or job.rows > MAX_ROWS:
            # Most points that were written are not kept any more.
            kept = as_points(job.history.points())
            job.rows = len(kept)
            self._store.replace_points(job.id, kept)
        elif new:
            self._store.add_points(job.id, as_points(new))
        return taken

    def _leave_out_points(self, job: JobRecord, count: int) -> None:
        reason = f"{count} points are beyond iteration {job.most_iterations:g}, the most that is believed"
        self.left_out.append(ReportRefusal(job=job.id, reason=reason))
        if not job.is_doubted:
            job.is_doubted = True
            LOG.warning("job %s: %s", job.id, reason)

    def _take_flow(self, seen: FlowTold) -> None:
        job = self._accepting(seen.job)
        if job is None:
            return
        src, dst, *_ = seen.flow
        if self._host not in (src, dst) or src not in self._hosts or dst not in self._hosts:
            self._refuse(job.id, f"flow {src} to {dst}: {self._host} is no end of it, or an end is unknown")
            return
        owner = self._owner(seen.flow)
        if owner is not None and owner != job.id:
            self._refuse(job.id, f"flow {src} to {dst}: it belongs to job {owner}")
            return
        if job.merge_flow(seen.flow):
            self._rerouted[job.id] = job
            if job.ended_at is None:
                self.reasons.append(Cause.NEW_FLOWS)

    def _take_traffic(self, part: TrafficTold) -> Generator[None, None, None]:
        job = self._accepting(part.job)
        yield
        if job is None:
            return
        if not job.is_of_run(self._by_our_clock(part.as_of)):
            self._refuse(job.id, "its connections are from before this run of the job; is the host's clock right?")
            return
        if self._is_present and (yield from self._takes_links(job, part)):
            job.found_changed()
            self._rerouted[job.id] = job
            if job.ended_at is None:
                self.reasons.append(Cause.NEW_FLOWS)
        counts = {peer: (sent, received) for peer, sent, received in part.peers if peer in self._hosts}
        name = f"{self._report.session}:found{part.counter}"
        job.merge_sent(self._host, name, min(sum(sent for sent, _ in counts.values()), MAX_BYTES))
        job.measured.note(self._host, name, part.as_of, counts, part.missed)
        self._measured[job.id] = self.told[job.id] = job

    def _takes_links(self, job: JobRecord, part: TrafficTold) -> Generator[None, None, bool]:
        """Take the links of a part; whether the job's traffic is another one by them."""
        flows = None
        before = job.traffic.links_of(self._host)
        if part.links is not None:
            if self._links is None:
                # Counted once a batch: there may be as many jobs as parts.
                self._links = sum(other.traffic.links_of(self._host) for other in self._jobs.values())
            found = yield from self._flows_of(job, part, MAX_BATCH_LINKS - (self._links - before))
            # What another job has come to declare meanwhile is its own.
            flows = [flow for flow in found if self._owner(flow) in (None, job.id)]
        changed = job.traffic.merge(
            self._host, self._report.session, self._report.seq, flows, left_out=part.left_out,
            connections=part.connections,
        )  # fmt: skip
        if self._links is not None:
            self._links += job.traffic.links_of(self._host) - before
        return changed

    def _flows_of(self, job: JobRecord, part: TrafficTold, room: int) -> Generator[None, None, list[FlowKey]]:
        """Both directions of its links, without those that are another job's or lead nowhere that is known.

        ``room``: links that may still be kept of the host.
        """
        flows: list[FlowKey] = []
        foreign: dict[str, int] = {}
        for number, (peer, port, peer_port) in enumerate(part.links or ()):
            if number % LINKS_A_STEP == LINKS_A_STEP - 1:
                yield
            if peer not in self._hosts or peer == self._host or len(flows) >= 2 * room:
                continue
            ways = both_ways(self._host, peer, port, peer_port)
            owner = next((owner for way in ways if (owner := self._owner(way)) not in (None, job.id)), None)
            if owner is None:
                flows += ways
            else:
                foreign[owner] = foreign.get(owner, 0) + 1
        for owner, count in sorted(foreign.items()):
            reason = f"{count} connections are on ports that job {owner} declares"
            self.left_out.append(ReportRefusal(job=job.id, reason=reason))
        return flows

    def _cross_check(self, job: JobRecord) -> None:
        """Say once what a job declares and is measured otherwise, and again when it is another thing."""
        problems = job.problems
        # Its numbers change all the time; that there is a disagreement does not.
        if bool(problems) != job.is_disputed:
            job.is_disputed = bool(problems)
            if problems:
                LOG.warning("job %s: %s", job.id, "; ".join(problems))
            else:
                LOG.info("job %s: what it declares is what is measured, by now", job.id)

    def _accepting(self, job_id: str) -> JobRecord | None:
        job = self._jobs.get(job_id)
        if job is None or self._host not in job.hosts:
            # The same words for both: whose token is one host's must not learn of the jobs of others.
            self._refuse(job_id, f"unknown job on {self._host}; register it first, with a task, flow or demand there")
            return None
        return job

    def _by_our_clock(self, time: float | None) -> float:
        """A time of the host by the controller's clock; None: when the batch was sent. Nothing is known in advance."""
        return min((self._report.sent_at if time is None else time) + self._offset, self._now)

    def _refuse(self, job: str, reason: str) -> None:
        """Leave a part out."""
        self.refused.append(ReportRefusal(job=job, reason=reason))


def _latest(parts: Iterable[TrafficTold]) -> Collection[TrafficTold]:
    """Of each job what is told of it last, with the links that are told last: both replace what was told before."""
    latest: dict[str, TrafficTold] = {}
    for part in parts:
        before = latest.get(part.job)
        if part.links is None and before is not None and before.links is not None:
            latest[part.job] = part._replace(links=before.links, left_out=before.left_out)
        else:
            latest[part.job] = part
    return latest.values()
