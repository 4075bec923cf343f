"""Demand as JSON, remembered. Measured demand may have as many pairs as a job has hosts squared; it seldom changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from controller.declared.json_texts import text_of
from controller.memo import Memo
from controller.model import Demand
from controller.pieces import Steps


class Texts(NamedTuple):
    """JSON lists: ``as_rows`` of source, destination and bytes, ``as_specs`` of ``wire.DemandSpec``."""

    as_rows: str
    as_specs: str


NOTHING = Texts("[]", "[]")
_known: Memo[Sequence[Demand], Texts] = Memo(16_384)


def texts_of(demand: Sequence[Demand]) -> Steps[Texts]:
    """Returns the texts of demand; yields where others may go on, but not where the texts are remembered."""
    if not demand:
        return NOTHING
    held = _known.peek(demand)
    if held is None:
        written = yield from _write(demand)
        held = _known.get(demand, lambda: written)
    return held


def _write(demand: Sequence[Demand]) -> Steps[Texts]:
    rows = yield from text_of(demand)
    specs = yield from text_of(_Specs(demand))
    return Texts(rows, specs)


class _Specs(Sequence[dict[str, Any]]):
    """Demand as the fields of ``wire.DemandSpec``; each entry is made when it is read."""

    def __init__(self, demand: Sequence[Demand]) -> None:
        self._demand = demand

    def __len__(self) -> int:
        return len(self._demand)

    def __getitem__(self, index: Any) -> Any:
        return self._demand[index]._asdict()
