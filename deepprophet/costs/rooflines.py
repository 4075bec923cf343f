"""Rooflines from what was measured of single operators: a family's, and those of operators that were measured often.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deepprophet.costs.calibration import Roofline
from deepprophet.costs.costs import dtype_of
from deepprophet.costs.fit import fit
from deepprophet.costs.measured import Measurement
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
        further = [table[key].far - table[key].near for key in members]
        moved = sum(member.bytes for member in members.values())
        once, flop, byte, *terms = near.factors
        yield Roofline(
            family=family, name=name, dtype=dtype, once=once, flop=flop, byte=byte, terms=tuple(terms),
            far_byte=sum(further) / moved if moved else 0.0, low=near.low, high=near.high, samples=len(members),
        )  # fmt: skip
