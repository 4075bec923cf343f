"""Which operators that a calibration has not seen are worth measuring first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deepprophet.costs import costs
from deepprophet.costs.calibration import Calibration
from deepprophet.graph.graph import Graph, Operator

SET_UP_SECONDS = 0.004
"""The measurement of any operator takes this time to make its inputs and to empty the caches."""


@dataclass(frozen=True, slots=True)
class Candidate:
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


def unmeasured(graph: Graph, known: Calibration) -> list[Candidate]:
    """The operators of a graph that are not in the calibration's table."""
    parts = costs.costs(graph, known, {})
    operators = {operator.key: (operator, part) for operator, part in zip(graph.operators, parts, strict=True)}
    candidates = []
    for key, unseen in costs.unseen(graph, parts).items():
        operator, part = operators[key]
        candidates.append(
            Candidate(operator, part.seconds, unseen.seconds, None if part.way == "guess" else part.alike)
        )
    return candidates


def in_order(candidates: Sequence[Candidate], calls: int) -> Iterator[Candidate]:
    """Yield the operators of unknown families first, then those whose measurement removes most doubt for its time.

    [ours] The doubt about an operator is its time in an iteration, divided by one more than the number of measured
    operators of its kind. A measurement removes the operator's own doubt, and lowers that of the others of its kind
    (``FamilyCorrection``).
    """
    left = {candidate.operator.key: candidate for candidate in candidates}
    of_kind: dict[str, float] = {}
    seen: dict[str, int] = {}
    for candidate in candidates:
        if candidate.kind is not None:
            of_kind[candidate.kind] = of_kind.get(candidate.kind, 0.0) + candidate.all

    def benefit(candidate: Candidate) -> tuple[bool, float]:
        if candidate.kind is None:
            return True, candidate.all / candidate.takes(calls)
        measured = seen.get(candidate.kind, 0)
        others = of_kind[candidate.kind] - candidate.all
        return False, (candidate.all / (1 + measured) + others / ((1 + measured) * (2 + measured))) / candidate.takes(
            calls
        )

    while left:
        best = max(left.values(), key=benefit)
        yield best
        del left[best.operator.key]
        if best.kind is not None:
            of_kind[best.kind] -= best.all
            seen[best.kind] = seen.get(best.kind, 0) + 1
