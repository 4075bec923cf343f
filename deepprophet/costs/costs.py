"""What each operator of a graph costs: from the device's table, from a measurement just made, or by its family's
roofline.

Each cost has an interval. Operators with the same shapes err together, and so do those that one roofline costs; others
do not. What a whole iteration may err beyond that was measured when the device was calibrated. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from deepprophet.costs.calibration import Calibration, Context, Roofline
from deepprophet.costs.corrections import FamilyCorrection
from deepprophet.costs.measured import SMALL_BYTES, Measurement
from deepprophet.graph import shapes
from deepprophet.graph.families import short
from deepprophet.graph.graph import PHASES, Graph, Operator, Phase
from deepprophet.graph.spec import parse

Way = Literal["table", "measured", "roofline", "guess"]
WAYS: tuple[Way, ...] = ("table", "measured", "roofline", "guess")

_LEAST_KNOWN: tuple[Way, ...] = ("guess", "roofline", "measured")

UNSEEN = 3.0
"""The cost of an unknown family is guessed from all others, and is right up to this factor."""

OTHER_TYPE = 1.5
"""The interval of a roofline of another data type is wider by this factor."""

OTHER_MODEL = 0.1
"""[ours] The interval of an iteration is wider by this share of the prediction, added to the other parts by squares.

It was learned on the models of the draw ``studied`` alone (``evaluation.deepprophet.drawn``): with it 14 of these 18
are inside, which is as near to 80 % as 18 models can be.
"""

VIEW_WEIGHT = 0.3
"""A view costs an iteration this share of what a call of a computing operator costs."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of an operator in an iteration, with the interval, and how they are known. ``alike`` errs together."""

    seconds: float
    low: float
    high: float
    way: Way
    alike: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """An operator that the calibration has not seen: the seconds that it is thought to take in an iteration, and
    whence.
    """

    seconds: float
    way: Way


def costs(graph: Graph, known: Calibration, fresh: Mapping[str, Measurement], neighbours: float = 0.0) -> list[Cost]:
    """Return the cost of each operator, beside so many busy workers on the same machine."""
    context = context_for(known.contexts, neighbours)
    corrections = _family_correction(graph, known.rooflines, fresh)
    known_costs: dict[tuple[str, Phase, float, float, int, int], Cost] = {}
    answer = []
    for operator in graph.operators:
        same = (
            operator.key, operator.called_in, round(operator.far_share, 2), operator.fresh_bytes, operator.modules,
            operator.gradients,
        )  # fmt: skip
        if same not in known_costs:
            known_costs[same] = _cost(operator, known, fresh, context, corrections)
        answer.append(known_costs[same])
    return answer


def context_for(contexts: Sequence[Context], neighbours: float) -> Context:
    """The context with so many neighbours; between two that were measured in proportion."""
    ordered = sorted(contexts, key=lambda context: context.neighbours)
    below = [c for c in ordered if c.neighbours <= neighbours] or ordered[:1]
    above = [c for c in ordered if c.neighbours >= neighbours] or ordered[-1:]
    low, high = below[-1], above[0]
    if low.neighbours >= high.neighbours:
        return low
    share = (neighbours - low.neighbours) / (high.neighbours - low.neighbours)

    def between(first: float, second: float) -> float:
        return first + share * (second - first)

    mixed = {
        name: between(getattr(low, name), getattr(high, name))
        for name in ("near", "far", "byte", "fresh", "module", "gradient", "low", "high")
    }
    calls = tuple(map(between, low.calls, high.calls))
    return low.model_copy(update={**mixed, "calls": calls})


def total(parts: Sequence[Cost], context: Context, times: Sequence[int]) -> tuple[float, float, float]:
    """Seconds of all operators together, each so many ``times``, and their interval."""
    seconds = sum(part.seconds * count for part, count in zip(parts, times, strict=True))
    below: dict[str, float] = {}
    above: dict[str, float] = {}
    for part, count in zip(parts, times, strict=True):
        below[part.alike] = below.get(part.alike, 0.0) + (part.seconds - part.low) * count
        above[part.alike] = above.get(part.alike, 0.0) + (part.high - part.seconds) * count
    down = math.hypot(*below.values(), seconds * max(1.0 - context.low, 0.0), seconds * OTHER_MODEL)
    up = math.hypot(*above.values(), seconds * max(context.high - 1.0, 0.0), seconds * OTHER_MODEL)
    return seconds, max(seconds - down, 0.0), seconds + up


def unseen(graph: Graph, parts: Sequence[Cost]) -> dict[str, Unseen]:
    """Operators that the calibration has not seen, by key. Those of unknown families come first, then the longest of
    those predicted by family, then those that were measured for this prediction.
    """
    by_key: dict[str, Unseen] = {}
    for operator, part, count in zip(graph.operators, parts, graph.times(), strict=True):
        if part.way != "table":
            so_far = by_key[operator.key].seconds if operator.key in by_key else 0.0
            by_key[operator.key] = Unseen(so_far + part.seconds * count, part.way)
    return dict(sorted(by_key.items(), key=lambda item: (_LEAST_KNOWN.index(item[1].way), -item[1].seconds)))


def _family_correction(
    graph: Graph, rooflines: Sequence[Roofline], fresh: Mapping[str, Measurement]
) -> FamilyCorrection:
    """Returns the corrections that follow from what was just measured and what rooflines predict of it."""
    measured = {operator.key: operator for operator in graph.operators if operator.key in fresh}
    pairs = []
    for key, operator in measured.items():
        if (roofline := roofline_for(operator, rooflines)) is not None:
            pairs.append((roofline, dtype_of(key), roofline_seconds(roofline, operator), fresh[key].near))
    return FamilyCorrection(pairs)


def _cost(
    operator: Operator,
    known: Calibration,
    fresh: Mapping[str, Measurement],
    context: Context,
    corrections: FamilyCorrection,
) -> Cost:
    call = context.calls[PHASES.index(operator.called_in)]
    each = call * (VIEW_WEIGHT if operator.family == "view" else 1.0) + context.byte * operator.bytes
    each += context.fresh * operator.fresh_bytes
    each += context.module * operator.modules + context.gradient * operator.gradients
    measurement = fresh.get(operator.key)
    way: Way = "measured"
    if measurement is None:
        measurement, way = known.measured(operator.key), "table"
    if measurement is not None:
        further = (measurement.far - measurement.near) * operator.far_share
        seconds = context.near * above(measurement.near, known.floor) + context.far * further + each
        low = seconds - context.near * (measurement.near - measurement.low)
        high = seconds + context.near * (measurement.high - measurement.near)
        return Cost(seconds, min(low, seconds), max(high, seconds), way, operator.key)
    return _by_roofline(operator, known, context, each, corrections)


def above(seconds: float, floor: float) -> float:
    """What an operator takes beyond the call of one that does nothing."""
    return max(seconds - floor, 0.0)


def roofline_for(operator: Operator, rooflines: Sequence[Roofline]) -> Roofline | None:
    """The roofline of an operator's family, of its own where there is one, and of its type of number if possible."""
    name, dtype = short(parse(operator.key).name), dtype_of(operator.key)
    fitting = [r for r in rooflines if r.family == operator.family and r.name in ("", name)]
    return max(fitting, key=lambda r: (r.dtype == dtype, r.name == name), default=None)


def _by_roofline(
    operator: Operator, known: Calibration, context: Context, each: float, corrections: FamilyCorrection
) -> Cost:
    rooflines = known.rooflines
    roofline, dtype = roofline_for(operator, rooflines), dtype_of(operator.key)
    way: Way = "roofline"
    if roofline is not None:
        widen = 1.0 if roofline.dtype == dtype else OTHER_TYPE
    else:
        of_families = [r for r in rooflines if not r.name]
        candidates = [r for r in of_families if r.family != "view"] or of_families
        if not candidates:
            return Cost(each, 0.0, UNSEEN * each, "guess", operator.family)
        # The middle of what the known families would take.
        ordered = sorted(candidates, key=lambda r: roofline_seconds(r, operator))
        roofline, widen, way = ordered[len(ordered) // 2], UNSEEN, "guess"
    near = roofline_seconds(roofline, operator)
    alone = context.near * above(near, known.floor) + context.far * far_seconds(roofline, operator) * operator.far_share
    alone *= 1.0 if way == "guess" else corrections.factor(roofline, dtype, near)
    low, high = min(roofline.low, 1.0) / widen, max(roofline.high, 1.0) * widen
    return Cost(
        alone + each,
        alone * low + each,
        alone * high + each,
        way,
        f"{operator.family}/{roofline.name}/{roofline.dtype}",
    )


def roofline_seconds(roofline: Roofline, operator: Operator) -> float:
    """What a roofline says of an operator with its inputs near."""
    seconds = roofline.once + roofline.flop * operator.flops + roofline.byte * operator.bytes
    if any(roofline.terms):
        own = shapes.terms(parse(operator.key), operator.flops)
        # Of another family, where this is a guess, there may be more or fewer.
        seconds += sum(factor * term for factor, term in zip(roofline.terms, own, strict=False))
    return seconds


def far_seconds(roofline: Roofline, operator: Operator) -> float:
    """What it adds if all its inputs are far."""
    return roofline.far_once + roofline.far_byte * operator.bytes if operator.bytes >= SMALL_BYTES else 0.0


def dtype_of(key: str) -> str:
    """The type of number that an operator works on: that of its first tensor with a point, or of its first."""
    types = [tensor.dtype for tensor in parse(key).tensors()]
    floating = [dtype for dtype in types if "float" in dtype]
    return (floating or types or ["float32"])[0]
