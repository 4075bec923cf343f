"""Which operators that a calibration has not seen are worth measuring first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deepprophet.costs import costs
from deepprophet.costs.calibration import Calibration
from deepprophet.graph.graph import Graph, Operator

SET_UP_SECONDS = 0.004
"""Of measuring any operator: its inputs are made, and the caches gone over."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An operator to be measured: seconds of one call, of all of an iteration, and whose roofline says so.

    ``kind`` of None: it is a guess by all others'.
    """

    operator: Operator
    once: float
    all: float
    kind: str | None

    def takes(self, calls: int) -> float:
        """Seconds of measuring it in so many calls."""
        return SET_UP_SECONDS + calls * self.once


def wanted(graph: Graph, known: Calibration) -> list[Wanted]:
    """The operators of a graph that are not in the calibration's table."""
    parts = costs.costs(graph, known, {})
    operators = {operator.key: (operator, part) for operator, part in zip(graph.operators, parts, strict=True)}
    found = []
    for key, unseen in costs.unseen(graph, parts).items():
        operator, part = operators[key]
        found.append(Wanted(operator, part.seconds, unseen.seconds, None if part.way == "guess" else part.alike))
    return found


def in_order(found: Sequence[Wanted], calls: int) -> Iterator[Wanted]:
    """Unknown families first, then what takes away most doubt for its time.

    [ours] What is doubtful of an operator is what it takes in an iteration, over one more than have been measured of
    its kind (``kin``): measuring it takes away its own, and of its kin's the difference that one more makes.
    """
    left = {one.operator.key: one for one in found}
    of_kind: dict[str, float] = {}
    seen: dict[str, int] = {}
    for one in found:
        if one.kind is not None:
            of_kind[one.kind] = of_kind.get(one.kind, 0.0) + one.all

    def worth(one: Wanted) -> tuple[bool, float]:
        if one.kind is None:
            return True, one.all / one.takes(calls)
        measured = seen.get(one.kind, 0)
        others = of_kind[one.kind] - one.all
        return False, (one.all / (1 + measured) + others / ((1 + measured) * (2 + measured))) / one.takes(calls)

    while left:
        best = max(left.values(), key=worth)
        yield best
        del left[best.operator.key]
        if best.kind is not None:
            of_kind[best.kind] -= best.all
            seen[best.kind] = seen.get(best.kind, 0) + 1
