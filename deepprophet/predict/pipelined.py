"""A pipeline: stages of the model on workers one after the other, through which a batch goes in parts. Pure.

[known] GPipe sends all parts forward and then all back (Huang and others, 2019, arXiv:1811.06965). 1F1B takes turns as
soon as the pipeline is full (Narayanan and others, SOSP 2019, doi:10.1145/3341301.3359646), which needs less memory and
as much time. [ours] Copies of a pipeline exchange the gradients of a stage when its last part has come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from deepprophet.errors import InputError
from deepprophet.graph.graph import Graph, Phase
from deepprophet.graph.patterns import owner
from deepprophet.predict.exchange import Group, Transfer, Wire
from deepprophet.predict.layout import Layout, Segment, Work, segments
from deepprophet.predict.mapping import Pipeline
from deepprophet.predict.schedule import chained
from deepprophet.predict.tasks import Task

Turn = tuple[Phase, int]
"""A pass of one part of a batch at a stage."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Seconds of one part of a batch by stage, and bytes over each boundary (the results of the stage before it)."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    optimizer: tuple[float, ...]
    parameters: tuple[int, ...]
    boundaries: tuple[float, ...]


def stages(work: Work, pipeline: Pipeline) -> Stages:
    """The stages of a model. Raises InputError for one without operators, or whose operators are not in order."""
    part_of = _part_of(pipeline)
    found = list(segments(work, part_of))
    count = len(pipeline.stages)
    _check_order(found, pipeline)
    seconds = {
        phase: [sum(s.seconds for s in found if s.phase == phase and s.part == part) for part in range(count)]
        for phase in ("forward", "backward")
    }
    sizes = [0] * count
    before = 0
    for parameter in work.graph.parameters:
        part = part_of(parameter.name.rpartition(".")[0])
        before = before if part is None else part
        sizes[before] += parameter.bytes
    whole = sum(sizes) or 1
    update = [work.optimizer() * size / whole for size in sizes]
    return Stages(
        tuple(seconds["forward"]), tuple(seconds["backward"]), tuple(update), tuple(sizes),
        tuple(_boundaries(work.graph, found, count)),
    )  # fmt: skip


def _part_of(pipeline: Pipeline) -> Callable[[str], int | None]:
    def part_of(module: str) -> int | None:
        if not module:
            return None
        return next((n for n, patterns in enumerate(pipeline.stages) if owner(module, patterns) is not None), None)

    return part_of


def _check_order(found: Sequence[Segment], pipeline: Pipeline) -> None:
    forward = [segment.part for segment in found if segment.phase == "forward"]
    for part, patterns in enumerate(pipeline.stages):
        if part not in forward:
            raise InputError(f"the mapping's pipeline: stage {part + 1} ({', '.join(patterns[:3])}) computes nothing")
    for before, after in pairwise(forward):
        if after < before:
            raise InputError(
                f"the mapping's pipeline: stage {after + 1} computes again after stage {before + 1}: stages must be in "
                "the order in which the model computes"
            )


def _boundaries(graph: Graph, found: Sequence[Segment], count: int) -> Iterator[float]:
    """Yield the bytes that each stage's forward pass gives to the next ones'."""
    part_at = {
        place: segment.part
        for segment in found
        if segment.phase == "forward"
        for place in range(segment.first, segment.end)
    }
    crossing: list[set[int]] = [set() for _ in range(count - 1)]
    for place, part in part_at.items():
        for before in graph.operators[place].after:
            if before in part_at:
                for boundary in range(part_at[before], part):
                    crossing[boundary].add(before)
    for places in crossing:
        yield sum(graph.operators[place].result_bytes for place in places)


def turns(schedule: str, stage: int, count: int, parts: int) -> list[Turn]:
    """The order in which a stage of ``count`` computes the passes of so many parts."""
    if schedule == "gpipe":
        return [("forward", part) for part in range(parts)] + [("backward", part) for part in range(parts)]
    ahead = min(count - stage - 1, parts)
    order: list[Turn] = [("forward", part) for part in range(ahead)]
    for part in range(parts - ahead):
        order += [("forward", part + ahead), ("backward", part)]
    return order + [("backward", part) for part in range(parts - ahead, parts)]


@dataclass
class _Builder:
    """Adds the tasks of all stages in an order in which each has what it waits for."""

    wire: Wire
    found: Stages
    copies: Sequence[Group]
    tasks: list[Task] = field(default_factory=list)
    sent: list[Transfer] = field(default_factory=list)
    done: dict[tuple[Phase, int, int], int] = field(default_factory=dict)
    """By phase, stage and part the place of the task that computes it."""

    arrived: dict[tuple[Phase, int, int], tuple[int, ...]] = field(default_factory=dict)

    def can(self, stage: int, turn: Turn) -> bool:
        """Whether all that a pass needs is there."""
        phase, part = turn
        if phase == "forward":
            return stage == 0 or ("forward", stage, part) in self.arrived
        last = stage == len(self.found.forward) - 1
        return ("forward", stage, part) in self.done and (last or ("backward", stage, part) in self.arrived)

    def add(self, stage: int, turn: Turn) -> None:
        """Compute a pass, and send its result on."""
        phase, part = turn
        seconds = (self.found.forward if phase == "forward" else self.found.backward)[stage]
        self.tasks.append(Task(phase, seconds, self.arrived.get((phase, stage, part), ()), stage))
        self.done[phase, stage, part] = len(self.tasks) - 1
        after = stage + 1 if phase == "forward" else stage - 1
        if 0 <= after < len(self.found.forward):
            # A gradient has as many bytes as what it is of.
            ends = [(copy[stage], copy[after]) for copy in self.copies]
            transfer = self.wire.send(ends, self.found.boundaries[min(stage, after)])
            self.sent.append(transfer)
            name = f"send {stage + 1} to {after + 1}"
            self.arrived[phase, after, part] = chained(self.tasks, name, (transfer,), (len(self.tasks) - 1,))


def layout(work: Work, wire: Wire, pipeline: Pipeline, copies: Sequence[Group]) -> Layout:
    """Lay out an iteration. ``copies``: the hosts of each copy's stages. Raises InputError."""
    found = stages(work, pipeline)
    count = len(pipeline.stages)
    build = _Builder(wire, found, copies)
    left = [turns(pipeline.schedule, stage, count, pipeline.micro_batches) for stage in range(count)]
    while any(left):
        for stage, order in enumerate(left):
            while order and build.can(stage, order[0]):
                build.add(stage, order.pop(0))
    for stage in range(count):
        after: tuple[int, ...] = (build.done["backward", stage, pipeline.micro_batches - 1],)
        if wire.workers > 1:
            groups = [tuple(copy[stage] for copy in copies)]
            transfer = wire.all_reduce(found.parameters[stage], groups)
            build.sent.append(transfer)
            after = chained(build.tasks, f"gradients {stage + 1}", (transfer,), after)
        build.tasks.append(Task("optimizer", found.optimizer[stage], after, stage))
    return Layout(tuple(build.tasks), tuple(build.sent))
