"""FSDP: each worker keeps a part of each parameter, and gathers the others' parts while it computes with them. Pure.

[known] (Zhao and others, VLDB 2023, arXiv:2304.11277) A unit's parameters are gathered before its forward pass and
again before its backward pass, and its gradients are added up so that each worker has the sum of its own part. In the
backward pass the next unit is gathered while one computes; in the forward pass an accelerator's queue allows the same.
[known] On a processor, PyTorch waits for each exchange before it computes on (torch.distributed.fsdp._fully_shard), and
gloo's reduce-scatter is an all-reduce of which each worker keeps its part (ProcessGroupGloo.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from deepprophet.graph.patterns import owner
from deepprophet.predict.exchange import Group, Transfer, Wire
from deepprophet.predict.layout import Layout, Segment, Work, segments
from deepprophet.predict.mapping import Sharding
from deepprophet.predict.schedule import DEVICE, chained
from deepprophet.predict.tasks import Task

Exchange = Callable[[float, Sequence[Group]], Transfer]
ROOT = 0
"""The part of a model that is in no unit."""


@dataclass
class _Builder:
    work: Work
    wire: Wire
    sizes: dict[int, int]
    is_accelerator: bool
    tasks: list[Task] = field(default_factory=list)
    sent: list[Transfer] = field(default_factory=list)
    computed: list[int] = field(default_factory=list)
    """The places of what the device has computed, one for each segment."""

    def gather(self, part: int, after: tuple[int, ...]) -> tuple[int, ...]:
        """Gather a part; return what waits for it."""
        return self._exchange("gather", part, after, self.wire.all_gather)

    def scatter(self, part: int, after: tuple[int, ...]) -> tuple[int, ...]:
        """Add up a part's gradients, of which each worker gets its own; return what waits for it."""
        scatter = self.wire.all_gather if self.is_accelerator else self.wire.all_reduce
        return self._exchange("scatter", part, after, scatter)

    def _exchange(self, name: str, part: int, after: tuple[int, ...], exchange: Exchange) -> tuple[int, ...]:
        if self.wire.workers < 2 or not self.sizes.get(part):
            return after
        transfer = exchange(self.sizes[part], self.wire.all_groups)
        self.sent.append(transfer)
        return chained(self.tasks, name, (transfer,), after)

    def compute(self, segment: Segment, after: tuple[int, ...], *, copied: bool) -> None:
        """Compute a segment; ``copied``: and what was gathered for it is put in its place first."""
        seconds = segment.seconds + (self.work.wrapping.byte * self.sizes.get(segment.part, 0) / 2 if copied else 0.0)
        self.tasks.append(Task(segment.phase, seconds, after, DEVICE))
        self.computed.append(len(self.tasks) - 1)

    def before(self, *, early: bool) -> tuple[int, ...]:
        """What a gathering waits for: the segment before, or, ``early``, the one before that."""
        place = -2 if early else -1
        return (self.computed[place],) if len(self.computed) >= -place else ()


def layout(work: Work, wire: Wire, sharding: Sharding, *, is_accelerator: bool) -> Layout:
    """Lay out an iteration; ``is_accelerator``: a device whose queue lets it compute while it exchanges."""
    part_of, sizes = _parts(work, sharding)
    build = _Builder(work, wire, sizes, is_accelerator)
    found = list(segments(work, part_of))
    gathered: set[int] = set()
    scattered: list[int] = []
    last_of = {segment.part: number for number, segment in enumerate(found) if segment.phase == "backward"}
    for number, segment in enumerate(found):
        turns = number > 0 and segment.phase != found[number - 1].phase
        if turns and sharding.reshard_after_forward:
            gathered &= {ROOT}
        new = segment.part not in gathered
        gathered.add(segment.part)
        after = () if is_accelerator else tuple(scattered)
        if new:
            after = build.gather(segment.part, (*build.before(early=is_accelerator and not turns), *after))
        build.compute(segment, after, copied=new)
        if last_of.get(segment.part) == number:
            scattered += build.scatter(segment.part, (build.computed[-1],))
    # Each worker has its own part of the parameters to change.
    build.tasks.append(Task("optimizer", work.optimizer() / wire.workers, tuple(scattered), DEVICE))
    return Layout(tuple(build.tasks), tuple(build.sent))


def _parts(work: Work, sharding: Sharding) -> tuple[Callable[[str], int | None], dict[int, int]]:
    """The part of each module, and the bytes of each part's parameters."""
    numbers: dict[str, int] = {}

    def part_of(module: str) -> int | None:
        unit = owner(module, sharding.units) if module else None
        if unit is None:
            return ROOT if module else None
        return numbers.setdefault(unit, len(numbers) + 1)

    sizes: dict[int, int] = {}
    for parameter in work.graph.parameters:
        part = part_of(parameter.name.rpartition(".")[0]) or ROOT
        sizes[part] = sizes.get(part, 0) + parameter.bytes
    return part_of, sizes
