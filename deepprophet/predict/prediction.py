"""A prediction: costs, buckets, wire and schedule put together. Pure.

The interval of the whole is found by playing the iteration through with all costs at their low and at their high end,
the wire's too: an iteration is a sum and a maximum of them, so it grows with each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from controller.documents.document import field_name
from controller.documents.faults import described
from controller.model import Role
from controller.wire import DemandSpec, JobSpec, TaskSpec
from deepprophet.costs import costs as costing
from deepprophet.costs.calibration import Calibration, Wrapping
from deepprophet.costs.costs import WAYS, Unseen, Way
from deepprophet.costs.measured import Measurement
from deepprophet.errors import InputError
from deepprophet.graph.graph import Graph
from deepprophet.predict.buckets import Bucket
from deepprophet.predict.exchange import NO_HOST, Architecture, Wire, added
from deepprophet.predict.layout import Work
from deepprophet.predict.mapping import PLAIN, MappingSpec
from deepprophet.predict.network import NetworkSpec, Placement, place
from deepprophet.predict.plans import laid_out
from deepprophet.predict.sharing import sharing
from deepprophet.predict.tasks import Played, play

MAX_PROCESSES = 4096
MAX_PAIRS = 65_536
"""A job has at most so many pairs of hosts that send to each other, as its registration (``JobSpec``) allows."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is predicted: the number of workers, the kind of exchange, the network, and how the model is spread."""

    workers: int
    architecture: Architecture
    network: NetworkSpec
    mapping: MappingSpec = PLAIN


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

    @property
    def examples(self) -> int:
        """How many examples an iteration trains on, at all workers."""
        mapping = self.configuration.mapping
        parts = mapping.accumulate if mapping.pipeline is None else mapping.pipeline.micro_batches
        return self.graph.batch_size * parts * mapping.copies(self.configuration.workers)

    def registration(self, model: str, iterations: float | None = None) -> JobSpec:
        """What the controller is told, so that it knows the job before its first iteration. Raises InputError."""
        role = Role.WORKER if self.configuration.architecture == "ps" else Role.PEER
        tasks = [TaskSpec(role=role, host=host) for host in self.placement.workers]
        tasks += [TaskSpec(role=Role.PS, host=host) for host in self.placement.ps]
        predicted = {"seconds": self.seconds, "low": self.low, "high": self.high} if self.seconds > 0 else None
        declared = {
            "tasks": tuple(tasks),
            "demand": self.demand,
            "compute_seconds": self.played.compute,
            "predicted": predicted,
            "iterations": iterations,
            "model": "".join(char if char.isprintable() else "?" for char in model)[:127],
        }
        try:
            return JobSpec.model_validate(declared)
        except ValidationError as error:
            place, reason = described(error, None, JobSpec)[0]
            raise InputError(f"no job can be registered with this prediction: {field_name(place)}: {reason}") from error


def predict(
    graph: Graph, known: Calibration, fresh: Mapping[str, Measurement], configuration: Configuration
) -> Prediction:
    """Predict an iteration. Raises InputError for a job of more processes than one can have."""
    placement = place(configuration.network, configuration.workers, configuration.architecture)
    _check_size(placement)
    stretch, neighbours, crowded = sharing(configuration.network, placement, known)
    parts = costing.costs(graph, known, fresh, neighbours)
    context = costing.context_for(known.contexts, neighbours)
    compute = costing.total(parts, context, graph.times())
    host = known.collective or NO_HOST
    copies = configuration.mapping.copies(configuration.workers)
    wrapped = copies > 1 or configuration.architecture == "ps"
    work = Work(graph, [part.seconds for part in parts], known.wrapping if wrapped else Wrapping())
    wire = Wire(configuration.network, placement, configuration.architecture, host)
    is_accelerator = known.provenance.kind != "cpu"
    layout, cut = laid_out(work, wire, configuration.mapping, is_accelerator=is_accelerator)

    def played(compute_factor: float, wire_factor: float) -> Played:
        return play(layout.scaled(compute_factor, wire_factor), stretch=stretch, crowded=crowded)

    middle = played(1.0, 1.0)
    seconds, low, high = compute
    below = played(low / seconds if seconds else 1.0, min(host.low, 1.0))
    above = played(high / seconds if seconds else 1.0, max(host.high, 1.0))
    times = graph.times()
    ways = {way: sum(p.seconds * n for p, n in zip(parts, times, strict=True) if p.way == way) for way in WAYS}
    return Prediction(
        configuration=configuration,
        graph=graph,
        seconds=middle.seconds,
        # Of tasks that wait for each other, all in less time may by chance end later.
        low=min(below.seconds, middle.seconds),
        high=max(above.seconds, middle.seconds),
        compute=(seconds * stretch, low * stretch, high * stretch),
        played=middle,
        buckets=cut,
        placement=placement,
        demand=added([part for transfer in layout.sent for part in transfer.demand]),
        ways=ways,
        unseen=costing.unseen(graph, parts),
        stretch=stretch,
        notes=tuple(_notes(graph, known, stretch, wrapped=bool(cut) and wrapped, sends=bool(layout.sent))),
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


def _notes(graph: Graph, known: Calibration, stretch: float, *, wrapped: bool, sends: bool) -> list[str]:
    notes = list(graph.notes)
    without = [parameter.name for parameter in graph.parameters if parameter.ready is None]
    if without and wrapped:
        notes.append(
            f"{len(without)} parameters get no gradient ({', '.join(without[:3])}): DistributedDataParallel would wait "
            "for them without find_unused_parameters=True; they are left out here"
        )
    if sends and known.collective is None:
        notes.append("what the hosts themselves need for an exchange was not measured: only the links count")
    if stretch > 1:
        notes.append(f"more workers than cores on a machine: they are taken to need {stretch:g} times as long")
    if known.provenance.quick:
        notes.append("the calibration is a quick one, of one model a kind: its intervals are wide")
    return notes
