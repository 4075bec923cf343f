"""What is done so that late gradients teach as much as fresh ones: the options, and which of them go together. Pure.

[known] Weight prediction: SpecTrain, arXiv 1809.02839; XPipe, arXiv 1911.04610; SAPipe, NeurIPS 2022; PipeOptim, arXiv
2312.00839. Delay compensation: DC-ASGD, ICML 2017, arXiv 1609.08326. Rates: staleness-aware, IJCAI 2016, arXiv
1511.05950; gap-aware, ICLR 2020, arXiv 1909.10802. [ours] Which of them go together with which transport.
"""

from __future__ import annotations

import reprlib
import struct
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from sasp.core.errors import SaspError

Prediction = Literal["none", "momentum", "local"]
"""A layer whose gradients are late computes with the parameters that it has; with those ahead by its last update, once
for each iteration in flight; or with those ahead by the optimiser's steps with this worker's own gradients."""

Rates = Literal["plain", "staleness", "gap"]
"""The step with a late gradient is as large as ever; divided by the gradient's delay; or divided, number by number, by
how far the parameter has moved meanwhile."""

MAX_STRENGTH = 1e6
"""Delay compensation is at most so strong."""


@dataclass(frozen=True, slots=True)
class StalenessOptions:
    """What is done about late gradients. ``delay_compensation`` is DC-ASGD's lambda; 0 is without it."""

    prediction: Prediction = "none"
    delay_compensation: float = 0.0
    rates: Rates = "plain"

    def __post_init__(self) -> None:
        for name, value, known in (("prediction", self.prediction, Prediction), ("rates", self.rates, Rates)):
            if value not in get_args(known):
                raise SaspError(f"{name} is {reprlib.repr(value)}; choose from {', '.join(get_args(known))}")
        strength = self.delay_compensation
        if isinstance(strength, bool) or not isinstance(strength, (int, float)) or not 0 <= strength <= MAX_STRENGTH:
            raise SaspError(
                f"delay_compensation is {reprlib.repr(strength)}; it must be a number from 0 to {MAX_STRENGTH:.0f}"
            )

    @property
    def corrects(self) -> bool:
        """Whether steps depend on the parameters that a gradient was computed with."""
        return self.delay_compensation > 0 or self.rates != "plain"

    def check_all_reduce(self) -> None:
        """Raises SaspError for what would let the ranks of an all-reduce part."""
        if self.corrects and self.prediction == "local":
            raise SaspError(
                "prediction='local' lets each rank compute with parameters of its own, so delay_compensation and "
                "rates, which depend on them, would let the ranks' parameters part; use prediction='momentum'"
            )

    def check_server(self) -> None:
        """Raises SaspError for what a worker of a parameter server cannot do."""
        if self.corrects and self.prediction != "none":
            raise SaspError(
                "a parameter server does not know the parameters that a worker predicts, so delay_compensation and "
                "rates go only with prediction='none'"
            )

    def as_json(self) -> dict[str, Any]:
        """What a server needs to know of it."""
        return {"delay_compensation": float(self.delay_compensation), "rates": self.rates}

    def as_numbers(self) -> list[int]:
        """Whole numbers that differ where options do, to compare them over all-reduce."""
        strength = int.from_bytes(struct.pack(">d", self.delay_compensation))
        prediction, rates = get_args(Prediction).index(self.prediction), get_args(Rates).index(self.rates)
        return [prediction, rates, strength >> 32, strength & 0xFFFF_FFFF]


PLAIN = StalenessOptions()
"""Nothing is done about late gradients."""


def from_json(content: object) -> StalenessOptions:
    """Return the options that ``as_json`` said. Raises SaspError for anything else."""
    names = {"delay_compensation", "rates"}
    if not isinstance(content, dict) or content.keys() != names or not isinstance(content["rates"], str):
        raise SaspError("what is to be done about late gradients is not understood")
    return StalenessOptions(delay_compensation=content["delay_compensation"], rates=cast(Rates, content["rates"]))
