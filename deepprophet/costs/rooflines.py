"""Rooflines from what was measured of single operators: a family's, and those of operators that were measured often.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deepprophet.costs.calibration import Roofline
from deepprophet.costs.costs import dtype_of
from deepprophet.costs.fit import fit
from deepprophet.costs.measured import SMALL_BYTES, Measurement
from deepprophet.graph import families, shapes
from deepprophet.graph.graph import Operator
from deepprophet.graph.spec import parse

MIN_FAMILY_SAMPLES = 4
MIN_OPERATOR_SAMPLES = 8
"""An operator needs at least so many measured calls for a roofline of its own."""


def rooflines(operators: Iterable[Operator], table: Mapping[str, Measurement]) -> Iterator[Roofline]:
    """A roofline a family and type of number, fitted to what was measured; and one of each operator of which enough
    was.
    """
    groups: dict[tuple[str, str, str], dict[str, Operator]] = {}
    for operator in operators:
        if operator.key in table:
            for name in ("", families.short(parse(operator.key).name)):
                group = groups.setdefault((operator.family, name, dtype_of(operator.key)), {})
                group[operator.key] = operator
    for (family, name, dtype), members in groups.items():
        if len(members) < (MIN_OPERATOR_SAMPLES if name else MIN_FAMILY_SAMPLES):
            continue
        rows = [
            (1.0, member.flops, member.bytes, *shapes.terms(parse(key), member.flops))
            for key, member in members.items()
        ]
        near = fit(rows, [table[key].near for key in members])
        far_once, far_byte = _far(members, table)
        once, flop, byte, *terms = near.factors
        yield Roofline(
            family=family, name=name, dtype=dtype, once=once, flop=flop, byte=byte, terms=tuple(terms),
            far_once=far_once, far_byte=far_byte, low=near.low, high=near.high, samples=len(members),
        )  # fmt: skip


def _far(members: Mapping[str, Operator], table: Mapping[str, Measurement]) -> tuple[float, float]:
    """What far inputs add to operators of a family that are not small: once, and for a byte.

    The first bytes take longer than those after them, which the processor fetches ahead.
    """
    further = [
        (member.bytes, table[key].far - table[key].near) for key, member in members.items()
        if member.bytes >= SMALL_BYTES and table[key].far > table[key].near
    ]  # fmt: skip
    if len(further) < MIN_FAMILY_SAMPLES:
        return 0.0, sum(seconds for _, seconds in further) / max(sum(size for size, _ in further), 1)
    once, byte = fit([(1.0, size) for size, _ in further], [seconds for _, seconds in further]).factors
    return once, byte
