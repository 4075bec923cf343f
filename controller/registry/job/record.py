"""One job as the registry keeps it: its spec, what hosts reported of this run, and the value that policies see."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence, Set

from controller.declared.declared import Declared
from controller.declared.demand_texts import texts_of
from controller.declared.job_flows import FlowKey
from controller.declared.parts.joined import join
from controller.declared.parts.parts_of_job import PartsOfJob
from controller.families.history import FamilyHistory
from controller.families.names import FamilyKey, Owner
from controller.model import Demand, Job, Progress
from controller.pieces import Steps
from controller.registry.job.connections import Connections
from controller.registry.job.epochs import iterations_of_epoch
from controller.registry.job.history import History
from controller.registry.job.measured_demand import Measured
from controller.registry.job.problems import Problems, unmeasured
from controller.registry.job.run_length import iterations_left, most_iterations
from controller.registry.job.sent_counts import SentByHost

LOG = logging.getLogger("trainyard.registry")


class JobRecord:
    """A job. ``ended_at`` is None while it runs; ``run`` counts its registrations after an end.

    ``diverged``: hosts have reported of this run that its metric or its loss is no finite number.

    ``since``: what a host knew before that time is of an earlier run; None: there was none. ``is_given_up``: it was
    lost, and nobody has reported its end. ``rows`` counts the job's points in the journal, also those that the record
    keeps no more. ``registrar``: the host whose token gave the spec; None: an operator's. ``reported_by`` has the hosts
    that have reported this run, and whether their agent follows it; a host that only counts bytes is not in it.
    ``parts`` of None: the job was registered whole; else ``spec`` is what they declare together. ``dscp`` is the one
    that the run has, or had, for its life; None: jobs have those of their classes.

    What changes the job for the policies is a call of this class, which forgets the value that was made before.
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
        parts: PartsOfJob | None = None,
    ) -> None:
        self.id = job_id
        self.run = run
        self.arrival = arrival
        self.registered_at = registered_at
        self.since = since
        self.registrar = registrar
        self.parts = parts
        self.spec = spec
        self.stage = spec.stage
        self.ended_at: float | None = None
        self.lost_since: float | None = None
        self.is_given_up = False
        self.last_report: float | None = None
        self.received_at = 0.0
        self.reported_by: dict[str, bool] = {}
        self.diverged = False
        self.rows = 0
        self.dscp: int | None = None
        self.history = History()
        self.sent = SentByHost()
        self.connections = Connections(job_id, spec.traffic)
        self.measured = Measured()
        self._problems = Problems(job_id)
        self._family: FamilyHistory | None = None
        self._value: Job | None = None

    # What the job is ---------------------------------------------------------------------------------------------

    @property
    def hosts(self) -> frozenset[str]:
        """All hosts that take part in the job."""
        return self.spec.hosts

    @property
    def family(self) -> FamilyKey | None:
        """The family of the job; None: it has none."""
        if self.spec.family is None:
            return None
        return FamilyKey(Owner.of(self.spec.user, self.registrar), self.spec.family)

    def set_spec(self, spec: Declared) -> None:
        """Take another spec for the same run; a stage that the job was put into by others stays."""
        was_put = spec.stage is None and self.stage != self.spec.stage
        self.stage = self.stage if was_put else spec.stage
        self.spec = spec
        self.connections.claim(spec.traffic)
        self._value = None

    def set_stage(self, stage: str | None) -> None:
        """Move the job to a stage."""
        self.stage = stage
        self._value = None

    def set_dscp(self, dscp: int | None) -> None:
        """Give the run a DSCP of its own."""
        self.dscp = dscp
        self._value = None

    def set_family(self, history: FamilyHistory | None) -> None:
        """Take what earlier runs of the family say now."""
        if history is not self._family and history != self._family:
            self._family = history
            self._value = None

    def leave_out_parts(self, known: Set[str]) -> None:
        """Forget the parts of hosts that are not ``known``, so that the job goes on with the others, if there are any.

        Where these had all ended, the job ended with the last of them.
        """
        if self.parts is None or self.hosts <= known or self.hosts.isdisjoint(known):
            return
        for host in self.hosts - known:
            self.parts.forget(host)
        self.set_spec(join(self.parts))
        self.leave_hosts()
        if self.parts.is_over and self.ended_at is None:
            self.ended_at = self.parts.over_at

    # Progress ----------------------------------------------------------------------------------------------------

    def is_of_run(self, time: float) -> bool:
        """Returns whether what a host knew at ``time``, by the controller's clock, is of this run of the job."""
        return self.since is None or time >= self.since

    @property
    def witnesses(self) -> Set[str]:
        """The hosts that speak for the job: those that have reported it; before any has, all that take part in it.

        Where a part of the job is over, its host speaks for it no more.
        """
        hosts = (self.parts.running if self.parts is not None else None) or self.hosts
        return hosts & self.reported_by.keys() or hosts

    @property
    def most_iterations(self) -> float:
        """The iteration beyond which points are not believed."""
        return most_iterations(self.spec.iterations)

    def believes(self, point: Progress) -> bool:
        """Returns whether a point can be of this run."""
        return point.iteration <= self.most_iterations

    def merge_point(self, point: Progress) -> bool:
        """Merge a point of progress, if it is believed; returns whether it is new."""
        changed = self.believes(point) and self.history.add(point)
        if changed:
            self._value = None
        return changed

    def forget_history(self) -> None:
        """Drop all progress, because the metric has another meaning now."""
        self.history = History()
        self._value = None

    def count_otherwise(self) -> None:
        """Drop all progress and what was measured by it, because it counts something else now."""
        self.forget_history()
        self.measured.value = None

    def diverge(self) -> None:
        """Note that this run has diverged."""
        if not self.diverged:
            self.diverged, self._value = True, None
            LOG.warning("job %s has diverged: its metric or its loss is no finite number", self.id)

    # Traffic -----------------------------------------------------------------------------------------------------

    def merge_sent(self, host: str, count: str, sent: float) -> bool:
        """Merge one of a host's counts of bytes, each of which only grows; returns whether it grew."""
        return self._changes(self.sent.merge(host, count, sent))

    def merge_flow(self, flow: FlowKey) -> bool:
        """Note a connection that a host found; returns whether it adds to the flows that identify the job's traffic."""
        return self._changes(self.connections.see(flow))

    def merge_found(
        self, host: str, session: str, seq: int, flows: Iterable[FlowKey] | None, *, left_out: int, connections: int
    ) -> bool:
        """Merge the connections that a host's present agent found; returns whether the flows have changed."""
        return self._changes(
            self.connections.merge_found(host, session, seq, flows, left_out=left_out, connections=connections)
        )

    def forget_found(self, hosts: Collection[str]) -> bool:
        """Forget the connections that the agents of these hosts found; returns whether there was any."""
        return self._changes(self.connections.drop(hosts))

    def leave_hosts(self) -> bool:
        """Forget what was found by hosts that no longer take part in the job; returns whether there was any."""
        left = self.connections.found.hosts - self.hosts
        self.measured.drop(left)
        dropped = self.forget_found(left)
        return self.give_up(lambda flow: self.hosts.isdisjoint(flow[:2])) or dropped

    def give_up(self, is_not_ours: Callable[[FlowKey], bool]) -> bool:
        """Forget the found connections that are not the job's; returns whether there were any."""
        return self._changes(self.connections.give_up(is_not_ours))

    def measure(self) -> Steps[None]:
        """Measure the demand anew, from traffic and progress; yields where others may go on."""
        if (yield from self.measured.measure_in_steps(self.history.points())) and (
            not self.spec.demand or self.spec.unit == "epoch"
        ):
            self._value = None

    @property
    def iterations_of_epoch(self) -> float | None:
        """How many iterations an epoch has, by its traffic; None: not known, or progress counts iterations."""
        measured = self.measured.value
        if self.spec.unit != "epoch" or measured is None:
            return None
        return iterations_of_epoch(self.spec.demand, measured)

    def prepare_texts(self) -> Steps[None]:
        """Write the measured demand, which may be large, as text that is remembered; yields where others may go on."""
        if self.measured.value is not None:
            yield from texts_of(self.measured.value.demand)
        yield

    # Problems ----------------------------------------------------------------------------------------------------

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences about declared demand that is measured otherwise, and about output that hosts cannot read."""
        return (*self._problems.sentences(self._comparable_demand, self.measured.value), *unmeasured(self.spec))

    def note_unread(self, host: str, reason: str) -> None:
        """Note why a host cannot read the job's progress; empty: it can."""
        self._problems.note_unread(host, reason)

    def doubt(self, reason: str) -> None:
        """Log why reported points are not believed, for the first points of the run that are not."""
        self._problems.doubt(reason)

    def check_declaration(self) -> None:
        """Log once that the declared demand is not the measured one, and once that it is again."""
        self._problems.check_demand(self._comparable_demand, self.measured.value)

    @property
    def _comparable_demand(self) -> Sequence[Demand]:
        """The declared demand, where what is measured is of an iteration too."""
        return () if self.spec.unit == "epoch" else self.spec.demand

    # The value ---------------------------------------------------------------------------------------------------

    def value(self) -> Job:
        """Returns the job as the policies see it. Where its progress counts epochs, its iteration is an epoch there."""
        if self._value is None:
            measured, found = self.measured.value, self.connections.found
            self._value = Job(
                id=self.id,
                demand=tuple(self.spec.demand_in_force(measured.demand if measured is not None else ())),
                arrival=self.arrival,
                weight=self.spec.weight,
                stage=self.stage,
                iterations_left=iterations_left(self.spec.iterations, self.history.iterations_done),
                iterations_total=self.spec.iterations,
                compute_seconds=self.spec.compute_seconds * (self.iterations_of_epoch or 1.0),
                progress=self.history.points(),
                metric=self.spec.metric,
                target=self.spec.target,
                diverged=self.diverged,
                tasks=self.spec.tasks,
                flows=self.connections.flows(),
                listeners=self.spec.traffic.listeners,
                udp_listeners=self.spec.traffic.udp_listeners,
                found=self.connections.found_flows(),
                found_more=found.left_out,
                found_on=found.hosts,
                sent_bytes=self.sent.by_host,
                is_counted=bool(self.sent.counts),
                family=self._family,
                dscp=self.dscp,
                rungs_left=self.spec.rungs_left,
            )
        return self._value

    def _changes(self, changed: bool) -> bool:
        """Forget the value where something has changed; returns whether it has."""
        if changed:
            self._value = None
        return changed
