"""What the study compares: how workers keep in step, which layers are late, and what is done about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sasp.core.partial import LayerTimes, Times, choose_leads, iteration_seconds
from sasp.core.scheme import Scheme, parse
from sasp.core.staleness import PLAIN, StalenessOptions

WhichLayers = Literal["none", "all", "needed"]
Transport = Literal["server", "ranks"]
"""Gradients go to a parameter server, or the ranks of an all-reduce exchange them."""


@dataclass(frozen=True, slots=True)
class Arm:
    """``layers``: those whose gradients are late: none, all, or only those whose transfer does not fit.

    ``strengths``: the values of delay compensation that are tried; ``halves``: half batches, of which one is in flight.
    """

    name: str
    scheme: Scheme
    layers: WhichLayers = "none"
    late: StalenessOptions = PLAIN
    strengths: tuple[float, ...] = (0.0,)
    halves: bool = False

    @property
    def transports(self) -> tuple[Transport, ...]:
        """Those that the arm can go over."""
        # A server that makes the steps does not know what a worker predicts.
        corrects = self.late.rates != "plain" or any(self.strengths)
        only_ranks = self.halves or (corrects and self.late.prediction != "none")
        server: tuple[Transport, ...] = () if only_ranks else ("server",)
        return (*server, "ranks") if self.scheme.together else server

    @property
    def folder(self) -> str:
        """The name as a folder can be called: ``partial-momentum`` for "partial, momentum"."""
        return re.sub(r"[^a-z0-9+]+", "-", self.name)

    def leads(self, times: Times) -> tuple[int, ...]:
        """By how many iterations each layer is late, front first."""
        if self.layers == "needed":
            return choose_leads(times, self.scheme.lead)
        return (self.scheme.lead if self.layers == "all" else 0,) * len(times.layers)

    def seconds(self, times: Times) -> float:
        """Return the seconds of an iteration, by the recursion that chooses layers."""
        waits_for_all = self.scheme.sending != "sasp"
        layers = tuple(
            LayerTimes(
                0.0 if waits_for_all else layer.needed,
                times.computing if self.scheme.sending == "after" else layer.ready,
                layer.seconds,
            )
            for layer in times.layers
        )
        if self.halves:
            # Each half computes for half as long, and sends as much.
            halved = tuple(LayerTimes(n / 2, r / 2, seconds) for n, r, seconds in layers)
            return 2 * iteration_seconds(Times(times.computing / 2, halved, times.latency), self.leads(times))
        return iteration_seconds(times._replace(layers=layers), self.leads(times))


def _arms(*arms: Arm) -> Mapping[str, Arm]:
    return {arm.name: arm for arm in arms}


PLAIN_ARMS = ("bsp+overlap", "ssp:2+overlap", "asp+overlap")
"""The best of these is what the others are compared with."""


def going_over(transport: Transport, names: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the arms that can go over a transport, of all or of these."""
    return tuple(name for name in (ARMS if names is None else names) if transport in ARMS[name].transports)


_STRENGTHS = (0.3, 3.0, 30.0)
_LATE, _LATER = parse("bsp+sasp:1"), parse("bsp+sasp:2")
ARMS = _arms(
    *(Arm(name, parse(name)) for name in PLAIN_ARMS),
    Arm("late", _LATE, "all"),
    Arm("late, momentum", _LATE, "all", StalenessOptions("momentum")),
    Arm("late, local", _LATE, "all", StalenessOptions("local")),
    Arm("late, delay compensation", _LATE, "all", strengths=_STRENGTHS),
    Arm("late, gap", _LATE, "all", StalenessOptions(rates="gap")),
    Arm("late, momentum, delay compensation", _LATE, "all", StalenessOptions("momentum"), _STRENGTHS),
    Arm("late, momentum, gap", _LATE, "all", StalenessOptions("momentum", rates="gap")),
    Arm("partial", _LATE, "needed"),
    Arm("partial, momentum", _LATE, "needed", StalenessOptions("momentum")),
    Arm("partial, local", _LATE, "needed", StalenessOptions("local")),
    Arm("late by 2", _LATER, "all"),
    Arm("late by 2, momentum", _LATER, "all", StalenessOptions("momentum")),
    Arm("late by 2, staleness", _LATER, "all", StalenessOptions(rates="staleness")),
    Arm("halves", _LATE, "all", halves=True),
    Arm("ssp:2+sasp", parse("ssp:2+sasp"), "all"),
    Arm("asp+sasp:2", parse("asp+sasp:2"), "all"),
    Arm("asp+sasp:1, momentum", parse("asp+sasp:1"), "all", StalenessOptions("momentum")),
)
