"""One job as the registry keeps it: its spec, and what hosts reported of this run."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Set

from controller.declared.declared import Declared
from controller.declared.demand_texts import texts_of
from controller.declared.job_flows import FlowKey, in_order, wider
from controller.declared.json_texts import with_members
from controller.families.history import FamilyHistory
from controller.families.names import FamilyKey, Owner
from controller.journal.bodies import JobBody, ReporterBody, SeenBody, TallyBody
from controller.model import Demand, Flow, Job, Progress
from controller.pieces import Steps, whole
from controller.registry.host_record import HostRecord
from controller.registry.job.history import History
from controller.registry.job.measured_demand import Measured, Measurement, disagreements
from controller.registry.job.sent_counts import SentCounts
from controller.registry.job.traffic import Finding, FoundTraffic
from controller.registry.job.view import JobDescription, JobProgress, JobView, StateWord

LOG = logging.getLogger("trainyard.registry")
MAX_SEEN_FLOWS = 4096
UNKNOWN_RUN_ITERATIONS = 100.0
"""Expect a run of unknown length to go on for as many iterations as it has done, and for this many at least."""

MOST_ITERATIONS = 1e9
"""Do not believe that a run of unknown length has done more iterations than this."""

OVERRUN = 2.0
"""Believe progress up to this many times the declared iterations. A point beyond is an error, and believing it once
would end the job's progress."""

MAX_UNREAD_HOSTS = 8
"""Remember of so many hosts why they cannot read a job's progress."""


class JobRecord:
    """A job. ``ended_at`` is None while it runs; ``run`` counts its registrations after an end.

    ``diverged``: hosts have reported of this run that its metric or its loss is no finite number.

    ``since``: what a host knew before that time is of an earlier run; None: there was none. ``is_doubted``: some
    reported points were not believed. ``is_disputed``: the declared demand is not the measured one. ``is_given_up``: it
    was lost, and nobody has reported its end. ``rows`` counts the job's points in the journal, also those that the
    record keeps no more. ``registrar``: the host whose token gave the spec; None: an operator's. ``reported_by`` has
    the hosts that have reported this run, and whether their agent follows it; a host that only counts bytes is not in
    it.
    """

    def __init__(
        self,
        job_id: str,
        spec: Declared,
        *,
        run: int,
        arrival: float,
        registered_at: float,
        since: float | None = None,
        registrar: str | None = None,
    ) -> None:
        self.id = job_id
        self.run = run
        self.arrival = arrival
        self.registered_at = registered_at
        self.since = since
        self.registrar = registrar
        self.ended_at: float | None = None
        self.lost_since: float | None = None
        self.last_report: float | None = None
        self.received_at = 0.0
        self.is_doubted = False
        self.is_disputed = False
        self.is_given_up = False
        self.diverged = False
        self.rows = 0
        self.history = History()
        self.reported_by: dict[str, bool] = {}
        self._unread: dict[str, str] = {}
        self._sent: dict[str, SentCounts] = {}
        self._seen: OrderedDict[FlowKey, None] = OrderedDict()
        self.traffic = FoundTraffic()
        self.measured = Measured()
        self._flows: tuple[Flow, ...] | None = None
        self._found: tuple[Flow, ...] | None = None
        self._value: Job | None = None
        self._family: FamilyHistory | None = None
        self.spec = spec
        self.stage = spec.stage
        self.set_spec(spec)

    def set_spec(self, spec: Declared) -> None:
        """Take another spec for the same run; a stage that the job was put into by others stays."""
        was_put = spec.stage is None and self.stage != self.spec.stage
        self.stage = self.stage if was_put else spec.stage
        self.spec = spec
        self.give_up(spec.traffic.covers)
        self._flows = self._found = self._value = None

    @property
    def hosts(self) -> frozenset[str]:
        """All hosts that take part in the job."""
        return self.spec.hosts

    def is_of_run(self, time: float) -> bool:
        """Returns whether what a host knew at ``time``, by the controller's clock, is of this run of the job."""
        return self.since is None or time >= self.since

    @property
    def family(self) -> FamilyKey | None:
        """The family of the job; None: it has none."""
        if self.spec.family is None:
            return None
        return FamilyKey(Owner.of(self.spec.user, self.registrar), self.spec.family)

    def set_family(self, history: FamilyHistory | None) -> None:
        """Take what earlier runs of the family say now."""
        if history is not self._family and history != self._family:
            self._family = history
            self._value = None

    def set_stage(self, stage: str | None) -> None:
        """Move the job to a stage."""
        self.stage = stage
        self._value = None

    def forget_history(self) -> None:
        """Drop all progress, because the metric has another meaning now."""
        self.history = History()
        self._value = None

    def believes(self, point: Progress) -> bool:
        """Returns whether a point can be of this run."""
        return point.iteration <= self.most_iterations

    @property
    def most_iterations(self) -> float:
        """The iteration beyond which points are not believed."""
        return MOST_ITERATIONS if self.spec.iterations is None else OVERRUN * self.spec.iterations

    def merge_point(self, point: Progress) -> bool:
        """Merge a point of progress, if it is believed; returns whether it is new."""
        changed = self.believes(point) and self.history.add(point)
        if changed:
            self._value = None
        return changed

    def diverge(self) -> None:
        """Note that this run has diverged."""
        if not self.diverged:
            self.diverged, self._value = True, None
            LOG.warning("job %s has diverged: its metric or its loss is no finite number", self.id)

    @property
    def sent(self) -> dict[str, float]:
        """Bytes of this run by host, summed over the host's counts."""
        return {host: counts.total for host, counts in sorted(self._sent.items())}

    @property
    def sent_total(self) -> float | None:
        """Bytes of this run over all hosts; None where no host counts them."""
        return sum(counts.total for counts in self._sent.values()) if self._sent else None

    def merge_sent(self, host: str, count: str, sent: float) -> bool:
        """Merge one of a host's counts of bytes, each of which only grows; returns whether it grew."""
        is_first = host not in self._sent  # that a host counts at all is news, even of 0 bytes
        changed = self._sent.setdefault(host, SentCounts()).merge(count, sent)
        if changed or is_first:
            self._value = None
        return changed

    def merge_flow(self, flow: FlowKey) -> bool:
        """Note a connection that a host found; returns whether it adds to the flows that identify the job's traffic."""
        if flow in self._seen:
            self._seen.move_to_end(flow)
            return False
        if self.spec.traffic.covers(flow):
            return False
        self._seen[flow] = None
        while len(self._seen) > MAX_SEEN_FLOWS:
            self._seen.popitem(last=False)
        self._flows = self._value = None
        return True

    def found_changed(self) -> None:
        """Note that the set of connections which hosts found has changed."""
        self._found = self._value = None

    def leave_hosts(self) -> bool:
        """Forget what was found by hosts that no longer take part in the job; returns whether there was any."""
        left = self.traffic.hosts - self.hosts
        self.measured.drop(left)
        dropped = self.traffic.drop(left)
        if dropped:
            self.found_changed()
        return self.give_up(lambda flow: self.hosts.isdisjoint(flow[:2])) or dropped

    def measure(self) -> Steps[None]:
        """Measure the demand anew, from traffic and progress; yields where others may go on."""
        if (yield from self.measured.measure_in_steps(self.history.points())) and not self.spec.demand:
            self._value = None

    def prepare_texts(self) -> Steps[None]:
        """Write the measured demand, which may be large, as text that is remembered; yields where others may go on."""
        if self.measured.value is not None:
            yield from texts_of(self.measured.value.demand)
        yield

    def note_unread(self, host: str, reason: str) -> None:
        """Note why a host cannot read the job's progress; empty: it can."""
        self._unread.pop(host, None)
        if reason and len(self._unread) < MAX_UNREAD_HOSTS:
            self._unread[host] = reason

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences about declared demand that is measured otherwise, and about output that hosts cannot read."""
        return (
            *self._disagreements,
            *(f"{host} cannot read its progress: {why}" for host, why in self._unread.items()),
        )

    @property
    def _disagreements(self) -> tuple[str, ...]:
        measured = self.measured.value
        return disagreements(self.spec.demand, measured) if self.spec.demand and measured is not None else ()

    def check_declaration(self) -> None:
        """Log once that the declared demand is not the measured one, and once that it is again."""
        problems = self._disagreements
        # The numbers change all the time; whether there is a disagreement does not.
        if bool(problems) != self.is_disputed:
            self.is_disputed = bool(problems)
            if problems:
                LOG.warning("job %s: %s", self.id, "; ".join(problems))
            else:
                LOG.info("job %s: its declared demand is the measured one again", self.id)

    @property
    def iterations_left(self) -> float:
        """The iterations left; see UNKNOWN_RUN_ITERATIONS where the length of the run is not known."""
        done = self.history.iterations_done
        if self.spec.iterations is None:
            return max(done, UNKNOWN_RUN_ITERATIONS)
        return max(self.spec.iterations - done, 0.0)

    @property
    def witnesses(self) -> Set[str]:
        """The hosts that speak for the job: those that have reported it; before any has, all that take part in it."""
        return self.hosts & self.reported_by.keys() or self.hosts

    def is_lost(self, hosts: Mapping[str, HostRecord], now: float, lease: float) -> bool:
        """Returns whether every witness that ever reported has been silent for longer than its lease."""
        agents = [hosts[name] for name in self.witnesses if name in hosts and hosts[name].last_seen is not None]
        return bool(agents) and not any(agent.alive(now, lease) for agent in agents)

    def value(self) -> Job:
        """Returns the job as the policies see it."""
        if self._value is None:
            self._value = Job(
                id=self.id,
                demand=self.spec.demand or (self.measured.value.demand if self.measured.value is not None else ()),
                arrival=self.arrival,
                weight=self.spec.weight,
                stage=self.stage,
                iterations_left=self.iterations_left,
                iterations_total=self.spec.iterations,
                compute_seconds=self.spec.compute_seconds,
                progress=self.history.points(),
                metric=self.spec.metric,
                target=self.spec.target,
                diverged=self.diverged,
                tasks=self.spec.tasks,
                flows=self._all_flows(),
                listeners=self.spec.traffic.listeners,
                found=self._found_flows(),
                found_more=self.traffic.left_out,
                found_on=self.traffic.hosts,
                sent_bytes=self.sent,
                is_counted=bool(self._sent),
                family=self._family,
            )
        return self._value

    def give_up(self, is_not_ours: Callable[[FlowKey], bool]) -> bool:
        """Forget the found connections that are not the job's; returns whether there were any."""
        found_gone = self.traffic.give_up(is_not_ours)
        if found_gone:
            self.found_changed()
        gone = [flow for flow in self._seen if is_not_ours(flow)]
        for flow in gone:
            del self._seen[flow]
        if gone:
            self._flows = self._value = None
        return found_gone or bool(gone)

    def _all_flows(self) -> tuple[Flow, ...]:
        """Returns the declared flows and those seen. They are remembered, because they seldom change."""
        if self._flows is None:
            declared = self.spec.traffic.flows
            keys = sorted({*declared, *self._seen}, key=in_order) if self._seen else declared
            self._flows = tuple(Flow(self.id, *key) for key in keys)
        return self._flows

    def _found_flows(self) -> tuple[Flow, ...]:
        """Returns the flows found as whole sets, without those that a wider flow or the declaration covers."""
        if self._found is None:
            found = self.traffic.flows
            own = {
                flow
                for flow in found
                if not self.spec.traffic.covers(flow) and not any(key in found for key in wider(flow) if key != flow)
            }
            self._found = tuple(Flow(self.id, *key) for key in sorted(own, key=in_order))
        return self._found

    def state(self, service_class: int | None) -> JobView:
        """Returns the job as the API shows it."""
        measured = self.history.last_measured
        demand = self.measured.value
        return JobView(
            id=self.id,
            spec=self.spec,
            arrival=self.arrival,
            state=self._state_word(),
            iterations_done=self.history.iterations_done,
            last_metric=measured.metric if measured else None,
            last_report=self.last_report,
            diverged=self.diverged,
            service_class=service_class,
            connections=self.traffic.connections,
            measured_demand=() if demand is None else demand.demand,
            measured_iterations=0.0 if demand is None else demand.iterations,
            problems=self.problems,
        )

    def description(self) -> JobDescription:
        """Returns what the job is."""
        measured = self.measured.value
        return JobDescription(self.spec, self.arrival, self.stage, () if measured is None else measured.demand)

    def progress(self) -> JobProgress:
        """Returns how the job fares."""
        measured = self.history.last_measured
        return JobProgress(
            id=self.id,
            user=self.spec.user,
            state=self._state_word(),
            iterations_done=self.history.iterations_done,
            iterations_total=self.spec.iterations,
            last_metric=measured.metric if measured else None,
            last_report=self.last_report,
            diverged=self.diverged,
        )

    def _state_word(self) -> StateWord:
        if self.ended_at is not None:
            return "ended"
        if self.lost_since is not None:
            return "lost"
        return "waiting" if self.last_report is None else "running"

    def body_text(self) -> str:
        """Returns what seldom changes as the text of a ``JobBody``, for the journal."""
        # The spec is JSON already, and may be large.
        rest = JobBody.model_construct(
            run=self.run,
            arrival=self.arrival,
            registered_at=self.registered_at,
            since=self.since,
            ended_at=self.ended_at,
            lost_since=self.lost_since,
            stage=self.stage,
            registrar=self.registrar,
        )
        return with_members(rest.model_dump_json(exclude={"spec"}), spec=self.spec.text)

    def tally_text(self) -> str:
        """Returns what every report changes, beside the points, as the text of a ``TallyBody``, for the journal."""
        measured = self.measured.value or Measurement((), 0.0, frozenset())
        # The wire and this record have checked the values. They are not checked again: a report may be of 1000 jobs.
        rest = TallyBody.model_construct(
            sent={host: counts.before for host, counts in self._sent.items()},
            counts={host: counts.latest() for host, counts in self._sent.items()},
            last_report=self.last_report,
            told_by=self.reported_by,
            diverged=self.diverged,
            measured_iterations=measured.iterations,
            measured_on=tuple(sorted(measured.sources)),
        )
        text = rest.model_dump_json(exclude={"measured"})
        return with_members(text, measured=whole(texts_of(measured.demand)).as_rows)

    def to_seen(self) -> SeenBody | None:
        """Returns the connections that hosts found, for the journal; None without any."""
        found = self.traffic.findings
        if not self._seen and not found:
            return None
        return SeenBody.model_construct(
            flows=tuple(self._seen),
            found={host: tuple(sorted(finding.flows, key=str)) for host, finding in found.items()},
            tellers={
                host: ReporterBody.model_construct(session=finding.session, left_out=finding.left_out)
                for host, finding in found.items()
                if finding.session
            },
        )

    def add_seen(self, seen: SeenBody) -> None:
        """Add the connections that the journal holds."""
        for flow in seen.flows:
            self.merge_flow(flow)
        findings = {}
        for host, flows in seen.found.items():
            teller = seen.tellers.get(host)
            findings[host] = Finding(
                teller.session if teller is not None else "",
                flows=frozenset(flows),
                left_out=teller.left_out if teller is not None else 0,
            )
        self.traffic = FoundTraffic(findings)
        self.found_changed()

    @classmethod
    def from_body(cls, job_id: str, body: JobBody) -> JobRecord:
        """Returns the job of a journal record, without its tally, its connections and its points."""
        job = cls(
            job_id,
            Declared.of(body.spec),
            run=body.run,
            arrival=body.arrival,
            registered_at=body.registered_at,
            since=body.since,
            registrar=body.registrar,
        )
        job.ended_at = body.ended_at
        job.lost_since = body.lost_since
        job.stage = body.stage
        return job

    def add_tally(self, tally: TallyBody) -> None:
        """Add the tally that the journal holds."""
        self.last_report = tally.last_report
        self.reported_by = dict(tally.told_by)
        self.diverged = tally.diverged
        self._sent = {host: SentCounts(sent, tally.counts.get(host, ())) for host, sent in tally.sent.items()}
        if tally.measured:
            demand = tuple(Demand(*entry) for entry in tally.measured)
            self.measured = Measured(Measurement(demand, tally.measured_iterations, frozenset(tally.measured_on)))
