"""A prediction: costs, buckets, wire and schedule put together. Pure.

The interval of the whole is found by playing the iteration through with all costs at their low and at their high end,
the wire's too: an iteration is a sum and a maximum of them, so it grows with each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from controller.documents.document import field_name
from controller.documents.faults import described
from controller.model import Role
from controller.wire import DemandSpec, JobSpec, TaskSpec
from deepprophet.costs import costs as costing
from deepprophet.costs.calibration import Calibration
from deepprophet.costs.costs import WAYS, Cost, Unseen, Way
from deepprophet.costs.measured import Measurement
from deepprophet.errors import InputError
from deepprophet.graph.graph import Graph
from deepprophet.predict.buckets import Bucket, buckets
from deepprophet.predict.exchange import NO_HOST, Architecture, Transfer, Wire, added
from deepprophet.predict.network import NetworkSpec, Placement, place
from deepprophet.predict.schedule import Plan, Played, Step, play

MAX_PROCESSES = 4096
MAX_PAIRS = 65_536
"""A job has at most so many pairs of hosts that send to each other, as its registration (``JobSpec``) allows."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The hardware configuration of a prediction: the number of workers, the kind of exchange, and the network."""

    workers: int
    architecture: Architecture
    network: NetworkSpec


@dataclass(frozen=True)
class Prediction:
    """An iteration's time in seconds with its interval (80 %), and why. ``compute`` is of the model, without
    waiting.
    """

    configuration: Configuration
    graph: Graph
    seconds: float
    low: float
    high: float
    compute: tuple[float, float, float]
    played: Played
    buckets: tuple[Bucket, ...]
    placement: Placement
    demand: tuple[DemandSpec, ...]
    ways: Mapping[Way, float]
    unseen: Mapping[str, Unseen]
    stretch: float
    notes: tuple[str, ...]

    @property
    def bytes(self) -> float:
        """What crosses the network in an iteration."""
        return sum(part.bytes for part in self.demand)

    def registration(self, model: str, iterations: float | None = None) -> JobSpec:
        """What the controller is told, so that it knows the job before its first iteration. Raises InputError."""
        role = Role.WORKER if self.configuration.architecture == "ps" else Role.PEER
        tasks = [TaskSpec(role=role, host=host) for host in self.placement.workers]
        tasks += [TaskSpec(role=Role.PS, host=host) for host in self.placement.ps]
        try:
            return JobSpec(
                tasks=tuple(tasks),
                demand=self.demand,
                compute_seconds=self.played.compute,
                iterations=iterations,
                model="".join(char if char.isprintable() else "?" for char in model)[:127],
            )
        except ValidationError as error:
            place, reason = described(error, None, JobSpec)[0]
            raise InputError(f"no job can be registered with this prediction: {field_name(place)}: {reason}") from error


def predict(
    graph: Graph, known: Calibration, fresh: Mapping[str, Measurement], configuration: Configuration
) -> Prediction:
    """Predict an iteration. Raises InputError for a job of more processes than one can have."""
    placement = place(configuration.network, configuration.workers, configuration.architecture)
    _check_size(placement)
    stretch, neighbours, crowded = _sharing(configuration.network, placement, known)
    parts = costing.costs(graph, known, fresh, neighbours)
    context = costing.context_for(known.contexts, neighbours)
    compute = costing.total(parts, context)
    cut = buckets(graph)
    host = known.collective or NO_HOST
    wrapped = configuration.workers > 1 or configuration.architecture == "ps"
    wire = Wire(configuration.network, placement, configuration.architecture, host)

    def played(compute_factor: float, wire_factor: float) -> Played:
        transfers = tuple(tuple(_slowed(t, wire_factor) for t in wire.of_bucket(bucket.bytes)) for bucket in cut)
        before = tuple(_slowed(t, wire_factor) for t in wire.of_buffers(graph.buffer_bytes))
        scaled = [replace(part, seconds=part.seconds * compute_factor) for part in parts]
        steps, after = _steps(graph, scaled, cut, known if wrapped else None)
        return play(Plan(before, steps, transfers, after, stretch, crowded))

    middle = played(1.0, 1.0)
    seconds, low, high = compute
    below = played(low / seconds if seconds else 1.0, min(host.low, 1.0))
    above = played(high / seconds if seconds else 1.0, max(host.high, 1.0))
    ways = {way: sum(p.seconds for p in parts if p.way == way) for way in WAYS}
    sent = [t for bucket in cut for t in wire.of_bucket(bucket.bytes)] + wire.of_buffers(graph.buffer_bytes)
    return Prediction(
        configuration=configuration,
        graph=graph,
        seconds=middle.seconds,
        low=below.seconds,
        high=above.seconds,
        compute=(seconds * stretch, low * stretch, high * stretch),
        played=middle,
        buckets=tuple(cut),
        placement=placement,
        demand=added([part for transfer in sent for part in transfer.demand]),
        ways=ways,
        unseen=costing.unseen(graph, parts),
        stretch=stretch,
        notes=tuple(_notes(graph, known, stretch, wrapped=wrapped)),
    )


def _check_size(placement: Placement) -> None:
    processes = len(placement.workers) + len(placement.ps)
    if processes > MAX_PROCESSES:
        raise InputError(
            f"{len(placement.workers)} workers and {len(placement.ps)} parameter servers: a job has at most "
            f"{MAX_PROCESSES} processes"
        )
    workers, servers = set(placement.workers), set(placement.ps)
    pairs = 2 * (len(workers) * len(servers) - len(workers & servers))
    if pairs > MAX_PAIRS:
        raise InputError(
            f"workers on {len(workers)} hosts and parameter servers on {len(servers)} send between {pairs} pairs of "
            f"hosts: a job has at most {MAX_PAIRS}"
        )


def _sharing(network: NetworkSpec, placement: Placement, known: Calibration) -> tuple[float, float, bool]:
    """Of the machine with the most workers a core: how much longer they take, busy neighbours, and whether it is
    full.
    """
    stretch, neighbours, crowded = 1.0, 0.0, False
    machines: dict[str, list[str]] = {}
    by_name = network.by_name()
    for host in placement.workers:
        machines.setdefault(by_name[host].machine or host, []).append(host)
    for hosts in machines.values():
        own = [cores for name in hosts if (cores := by_name[name].cores) is not None]
        cores = max(own, default=known.provenance.cores)
        if known.provenance.kind != "cpu":
            # A worker an accelerator, and as many accelerators as workers: nothing is shared.
            continue
        busy = len(hosts) * known.provenance.threads
        stretch = max(stretch, busy / cores)
        neighbours = max(neighbours, min(len(hosts), max(cores // known.provenance.threads, 1)) - 1.0)
        crowded = crowded or busy >= cores
    return stretch, neighbours, crowded


def _steps(
    graph: Graph, parts: Sequence[Cost], cut: Sequence[Bucket], wrapping: Calibration | None
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The operators between two gradients that complete a bucket as one step; then what comes when all are there."""
    wrap = None if wrapping is None else wrapping.wrapping
    closes: dict[int, list[int]] = {}
    for number, bucket in enumerate(cut):
        closes.setdefault(bucket.ready, []).append(number)
    ready = {p.ready: 0.0 for p in graph.parameters if p.ready is not None}
    for parameter in graph.parameters:
        if parameter.ready is not None and wrap is not None:
            # Half of the copying is into the bucket, half of it back.
            ready[parameter.ready] += wrap.parameter + wrap.byte * parameter.bytes / 2
    first_after, _ = graph.between("optimizer")
    last = first_after or len(graph.operators)
    steps: list[Step] = []
    held, phase = 0.0, "forward"
    for place_, (operator, part) in enumerate(zip(graph.operators[:last], parts[:last], strict=True)):
        if operator.phase != phase:
            steps.append(Step(phase, held))
            held, phase = 0.0, operator.phase
        held += part.seconds + ready.get(place_, 0.0)
        for number in closes.get(place_, ()):
            steps.append(Step(phase, held, number))
            held = 0.0
    steps.append(Step(phase, held))
    back = sum(wrap.byte * p.bytes / 2 for p in graph.parameters if p.ready is not None) if wrap is not None else 0.0
    update = sum(part.seconds for part in parts[last:])
    return tuple(steps), (Step("copy back", back), Step("optimizer", update))


def _slowed(transfer: Transfer, factor: float) -> Transfer:
    return replace(transfer, seconds=transfer.seconds * factor)


def _notes(graph: Graph, known: Calibration, stretch: float, *, wrapped: bool) -> list[str]:
    notes = []
    without = [parameter.name for parameter in graph.parameters if parameter.ready is None]
    if without and wrapped:
        notes.append(
            f"{len(without)} parameters get no gradient ({', '.join(without[:3])}): DistributedDataParallel would wait "
            "for them without find_unused_parameters=True; they are left out here"
        )
    if wrapped and known.collective is None:
        notes.append("what the hosts themselves need for an exchange was not measured: only the links count")
    if stretch > 1:
        notes.append(f"more workers than cores on a machine: they are taken to need {stretch:g} times as long")
    if known.provenance.quick:
        notes.append("the calibration is a quick one, of one model a kind: its intervals are wide")
    return notes
