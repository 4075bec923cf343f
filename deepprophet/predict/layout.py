"""An iteration laid out as tasks, whatever the plan of the training is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from deepprophet.costs.calibration import Wrapping
from deepprophet.graph.graph import Graph, Phase
from deepprophet.predict.exchange import Transfer
from deepprophet.predict.tasks import Task


@dataclass(frozen=True, slots=True)
class Layout:
    """The tasks of an iteration, and all that they send."""

    tasks: tuple[Task, ...]
    sent: tuple[Transfer, ...]

    def scaled(self, compute: float, wire: float) -> list[Task]:
        """The tasks where devices and transfers take so many times as long."""
        return [replace(task, seconds=task.seconds * (wire if task.device is None else compute)) for task in self.tasks]


@dataclass(frozen=True, slots=True)
class Work:
    """What is laid out: a graph, the seconds of each of its operators, and what wrapping a model costs itself."""

    graph: Graph
    seconds: Sequence[float]
    wrapping: Wrapping

    def optimizer(self) -> float:
        """Seconds of the optimiser."""
        pairs = zip(self.graph.operators, self.seconds, strict=True)
        return sum(seconds for operator, seconds in pairs if operator.phase == "optimizer")


@dataclass(frozen=True, slots=True)
class Segment:
    """Operators of one phase and one part of a model that run one after the other; ``first`` and ``end`` of places."""

    phase: Phase
    part: int
    seconds: float
    first: int
    end: int


def segments(work: Work, part_of: Callable[[str], int | None]) -> Iterator[Segment]:
    """Yield the operators of the passes by part. Those of no module go with those before them.

    ``part_of``: the part of a module, by its name.
    """
    parts: list[tuple[Phase, int]] = []
    before = 0
    for operator in work.graph.operators:
        if operator.phase != "optimizer":
            found = part_of(operator.module)
            before = before if found is None else found
            parts.append((operator.phase, before))
    place = 0
    for (phase, part), group in groupby(parts):
        end = place + len(list(group))
        yield Segment(phase, part, sum(work.seconds[place:end]), place, end)
        place = end
