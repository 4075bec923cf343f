"""What an option of ``trainyard sim`` may be: argparse types, each with a message that says what would be right."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Callable

from simulator.workloads.transfers import ARCHITECTURES, Architecture


def positive(text: str) -> float:
    """A number above 0."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise ArgumentTypeError(f"{text!r}; it must be a number above 0")
    return value


def at_least_zero(text: str) -> float:
    """A number of 0 or more."""
    value = _number(text)
    if not 0 <= value < math.inf:
        raise ArgumentTypeError(f"{text!r}; it must be a number of 0 or more")
    return value


MIN_RATE, MAX_RATE = 1e-3, 1e18
"""A port's rate in bit/s must be between these, as in a snapshot."""


def rate(text: str) -> float:
    """A rate in bit/s."""
    value = _number(text)
    if not MIN_RATE <= value <= MAX_RATE:
        raise ArgumentTypeError(f"{text!r}; it must be a number from {MIN_RATE:g} to {MAX_RATE:g}, in bit/s")
    return value


def share(text: str) -> float:
    """A number of at least ``MIN_LOAD`` and at most 1."""
    value = _number(text)
    if not MIN_LOAD <= value <= 1:
        raise ArgumentTypeError(f"{text!r}; it must be at least {MIN_LOAD:g} and at most 1")
    return value


MAX_COUNT = 1_000_000
"""Every count is at most this: more would take all memory before anything is simulated."""
MAX_SEED = 999_999_999
MAX_SEEDS = 10_000
MIN_LOAD = 1e-6


def whole(least: int, most: int = MAX_COUNT) -> Callable[[str], int]:
    """A whole number from ``least`` to ``most``."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and least <= int(text) <= most):
            raise ArgumentTypeError(f"{text!r}; it must be a whole number from {least} to {most}")
        return int(text)

    return parse


def numbers(convert: Callable[[str], float]) -> Callable[[str], tuple[float, ...]]:
    """Several numbers, separated by commas, each once."""

    def parse(text: str) -> tuple[float, ...]:
        values = tuple(convert(part) for part in text.split(","))
        if len(set(values)) < len(values):
            raise ArgumentTypeError(f"{text!r}; one of them is given twice")
        return values

    return parse


def seed_list(text: str) -> tuple[int, ...]:
    """N: the seeds 1 to N; with a comma: these seeds."""
    parts = [whole(0, MAX_SEED)(part) for part in text.split(",") if part or "," not in text]
    if "," not in text:
        return tuple(range(1, whole(1, MAX_SEEDS)(text) + 1))
    if not parts or len(set(parts)) < len(parts):
        raise ArgumentTypeError(f"{text!r}; it must be seeds, each once, such as 3,7,11")
    return tuple(parts)


def span(text: str) -> tuple[int, int]:
    """N, or A-B."""
    low, dash, high = text.partition("-")
    first = whole(1)(low)
    last = whole(1)(high) if dash else first
    if last < first:
        raise ArgumentTypeError(f"{text!r}; the first must not be above the second")
    return first, last


def architectures(text: str) -> tuple[Architecture, ...]:
    """Names of architectures, with commas between."""
    matches = tuple(next((known for known in ARCHITECTURES if known == part), None) for part in text.split(","))
    chosen = tuple(architecture for architecture in matches if architecture is not None)
    if len(chosen) < len(matches):
        raise ArgumentTypeError(f"{text!r}; choose from {', '.join(ARCHITECTURES)}")
    return chosen


def synchronisation(text: str) -> tuple[int | None, int | None]:
    """``bsp``, ``ssp:S`` or ``asp``, each perhaps with ``+sasp``: the staleness (ASP's is None), and SaSP's lead.

    ``asp+sasp:S`` says how far a worker's computing may lead its own communication. Without SaSP there is no lead.
    """
    base, plus, added = text.partition("+")
    name, colon, number = base.partition(":")
    sasp, own_colon, own = added.partition(":")
    if bool(colon) != (name == "ssp") or bool(plus) != (sasp == "sasp") or (own_colon and name != "asp"):
        name = ""
    if name == "bsp":
        return 0, 0 if plus else None
    if name == "ssp":
        staleness = whole(1)(number)
        return staleness, staleness if plus else None
    if name == "asp":
        return None, (whole(0)(own) if own_colon else 0) if plus else None
    raise ArgumentTypeError(
        f"{text!r}; it must be bsp, ssp:S such as ssp:3, or asp, each perhaps with +sasp (asp+sasp:S)"
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r}; it must be a number") from None
