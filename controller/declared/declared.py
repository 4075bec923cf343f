"""A job's spec in the form in which the controller keeps it.

A spec of 65,536 demands takes 0.4 s to check and 0.1 s to write. So the controller never holds one. It keeps the JSON
text that the API shows and the journal stores, the values that the policies see, and everything that follows from the
spec alone. Another process can compute that and send it in ``frames``, each of which is read in a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from controller.declared.claimed_traffic import ClaimedTraffic, size_of
from controller.declared.claims import Claims
from controller.declared.frames import pack, pack_rows, unpack, unpack_rows
from controller.declared.job_flows import FlowKey, PairKey, involved_hosts, key_of
from controller.families.names import family_in_force
from controller.model import Demand, Listeners, Metric, Role, Task, TrafficProtocol
from controller.pieces import Steps
from controller.wire import JobSpec
from controller.wire.base import Unit


class PredictedSeconds(NamedTuple):
    """How long one iteration was predicted to take, and its interval of 80 %."""

    seconds: float
    low: float
    high: float


class DeclaredFlow(NamedTuple):
    """One direction of traffic that a job names; a port of None is any."""

    src: str
    dst: str
    src_port: int | None
    dst_port: int | None
    protocol: TrafficProtocol


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """A job's spec as values. ``text`` is the whole of it as JSON: equal specs have equal texts.

    ``size`` counts the entries to keep of it; ``hosts`` are all hosts that it names. ``claims`` and ``traffic`` are
    computed by ``job_flows``. ``family`` is the name in force, ``user`` the declared one.
    """

    text: str
    metric: Metric
    target: float | None
    iterations: float | None
    unit: Unit
    compute_seconds: float
    predicted: PredictedSeconds | None
    weight: float
    arrival: float | None
    stage: str | None
    rungs_left: int | None
    tasks: tuple[Task, ...]
    flows: tuple[DeclaredFlow, ...]
    demand: tuple[Demand, ...]
    hosts: frozenset[str]
    size: int
    claims: Claims
    traffic: ClaimedTraffic
    family: str | None
    user: str | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Declared) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @classmethod
    def of(cls, spec: JobSpec) -> Declared:
        """Returns the values of a spec."""
        return cls(
            text=spec.model_dump_json(),
            metric=Metric(spec.metric.name, spec.metric.direction),
            target=spec.target,
            iterations=spec.iterations,
            unit=spec.unit,
            compute_seconds=spec.compute_seconds,
            predicted=_predicted(spec),
            weight=spec.weight,
            arrival=spec.arrival,
            stage=spec.stage,
            rungs_left=spec.rungs_left,
            tasks=tuple(Task(task.role, task.host, task.port, task.protocol) for task in spec.tasks),
            flows=tuple(DeclaredFlow(*key_of(flow), flow.protocol) for flow in spec.flows),
            demand=tuple(Demand(demand.src, demand.dst, demand.bytes) for demand in spec.demand),
            hosts=involved_hosts(spec),
            size=size_of(spec),
            claims=Claims.of(spec),
            traffic=ClaimedTraffic.of(spec),
            family=family_in_force(spec.family, spec.model),
            user=spec.user,
        )

    def demand_in_force(self, measured: Sequence[Demand]) -> Sequence[Demand]:
        """Returns the demand of what progress counts: the declared one, else what was measured.

        A declared demand is of an iteration. Where progress counts epochs, it stands in for what was not measured yet.
        """
        first, second = (measured, self.demand) if self.unit == "epoch" else (self.demand, measured)
        return first or second

    def frames(self) -> Iterator[bytes]:
        """Yields the same as bytes, in frames that are small enough to be read without a pause."""
        metric = (self.metric.name, self.metric.direction, self.target)
        predicted = None if self.predicted is None else tuple(self.predicted)
        numbers = (self.iterations, self.unit, self.compute_seconds, predicted, self.weight, self.arrival)
        yield pack((metric, numbers, (self.stage, self.rungs_left), self.size, (self.family, self.user)))
        yield self.text.encode()
        names: dict[str, str] = {}
        tables: tuple[Iterable[Any], ...] = (
            ((task.role.value, *task[1:]) for task in self.tasks),
            self.flows,
            self.demand,
            self.traffic.flows,
            self.traffic.listeners.ends,
            self.traffic.udp_flows,
            self.traffic.udp_listeners.ends,
            self.traffic.pairs,
        )
        for table in tables:
            # Equal names are one object, so that each is written once a frame.
            yield from pack_rows(tuple(_same(names, part) for part in row) for row in table)
        yield from pack_rows(self.hosts)
        yield from pack_rows(self.traffic.listeners.among)
        yield from pack_rows(self.traffic.udp_listeners.among)

    @classmethod
    def from_frames(cls, frames: Iterator[bytes]) -> Steps[Declared]:
        """Returns the value of ``frames``; yields after each frame that may take long."""
        metric, numbers, (stage, rungs_left), size, (family, user) = unpack(next(frames))
        iterations, unit, compute_seconds, predicted, weight, arrival = numbers
        text = next(frames).decode()
        yield
        names: dict[str, str] = {}

        def demand_of(row: tuple[str, str, float]) -> Demand:
            return Demand(_same(names, row[0]), _same(names, row[1]), row[2])

        tasks = tuple((yield from unpack_rows(frames, lambda row: Task(_ROLES[row[0]], *row[1:]))))
        flows = tuple((yield from unpack_rows(frames, DeclaredFlow._make)))
        demand = tuple((yield from unpack_rows(frames, demand_of)))
        claimed: list[FlowKey] = yield from unpack_rows(frames, tuple)
        ends: list[tuple[str, int]] = yield from unpack_rows(frames, tuple)
        udp_claimed: list[FlowKey] = yield from unpack_rows(frames, tuple)
        udp_ends: list[tuple[str, int]] = yield from unpack_rows(frames, tuple)
        pairs: list[PairKey] = yield from unpack_rows(frames, tuple)
        hosts = frozenset((yield from unpack_rows(frames, str)))
        among = tuple((yield from unpack_rows(frames, str)))
        udp_among = tuple((yield from unpack_rows(frames, str)))
        claims = Claims.of(_Named(tasks, flows))
        yield
        traffic = ClaimedTraffic(
            claimed,
            Listeners(tuple(ends), among),
            udp_flows=udp_claimed,
            udp_listeners=Listeners(tuple(udp_ends), udp_among),
            pairs=pairs,
        )
        yield
        return cls(
            text=text,
            metric=Metric(*metric[:2]),
            target=metric[2],
            iterations=iterations,
            unit=unit,
            compute_seconds=compute_seconds,
            predicted=None if predicted is None else PredictedSeconds(*predicted),
            weight=weight,
            arrival=arrival,
            stage=stage,
            rungs_left=rungs_left,
            tasks=tasks,
            flows=flows,
            demand=demand,
            hosts=hosts,
            size=size,
            claims=claims,
            traffic=traffic,
            family=family,
            user=user,
        )


_ROLES = {role.value: role for role in Role}


class _Named(NamedTuple):
    """The part of a declaration that claims are made of."""

    tasks: Sequence[Task]
    flows: Sequence[DeclaredFlow]
    demand: Sequence[Demand] = ()


def _same(known: dict[str, str], part: Any) -> Any:
    return known.setdefault(part, part) if isinstance(part, str) else part


def _predicted(spec: JobSpec) -> PredictedSeconds | None:
    told = spec.predicted
    return None if told is None else PredictedSeconds(told.seconds, told.low, told.high)
