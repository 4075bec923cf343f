"""Options of policies: the kinds of values that they take, and the check of a value that an operator has given.

A policy annotates each argument of its constructor with a kind, and checks the argument by it:

    def __init__(self, factor: Annotated[float, FACTOR, "The growth of each band."] = 2.0) -> None:
        self.factor = FACTOR.check("factor", factor)

``describe`` reads the annotations: messages about wrong options need them, and so does the reference of the policies.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, get_type_hints

MOST = 1e9
"""Numbers are at most this large unless a policy says otherwise."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number from ``low`` to ``high``; with ``above``, it must be above ``low``."""

    low: float = 0.0
    high: float = MOST
    above: bool = False

    def __str__(self) -> str:
        joint = ("above", "and at most") if self.above else ("from", "to")
        return f"a number {joint[0]} {self.low:g} {joint[1]} {self.high:g}"

    def check(self, name: str, value: object) -> float:
        """Returns ``value`` as a float. Raises ValueError, also for truth values, texts, NaN and infinities."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name}: {str(value)[:40]!r}; it must be {self}")
        try:
            number = float(value)
        except OverflowError:
            raise ValueError(f"{name}: the number is too large; it must be {self}") from None
        if not math.isfinite(number) or not self.low <= number <= self.high or (self.above and number == self.low):
            raise ValueError(f"{name}: {number:g}; it must be {self}")
        return number


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer from ``low`` to ``high``."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def check(self, name: str, value: object) -> int:
        """Returns ``value``. Raises ValueError for anything else, also for truth values."""
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise ValueError(f"{name}: {str(value)[:40]}; it must be {self}")
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the given words."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"

    def check(self, name: str, value: object) -> str:
        """Returns ``value``. Raises ValueError where it is not one of the words."""
        if not isinstance(value, str) or value not in self.words:
            raise ValueError(f"{name}: {_quoted(value)}; it must be {self}")
        return value


@dataclass(frozen=True, slots=True)
class Truth:
    """A truth value."""

    def __str__(self) -> str:
        return "true or false"

    def check(self, name: str, value: object) -> bool:
        """Returns ``value``. Raises ValueError where it is not a truth value."""
        if not isinstance(value, bool):
            raise ValueError(f"{name}: {_quoted(value)}; it must be {self}")
        return value


@dataclass(frozen=True, slots=True)
class HostName:
    """The name of a host. Only ``Policy.order`` can check that the snapshot has such a host."""

    def __str__(self) -> str:
        return "the name of a host"

    def check(self, name: str, value: object) -> str:
        """Returns ``value``. Raises ValueError where it is not a text, or is empty."""
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name}: {_quoted(value)}; it must be {self}")
        return value


@dataclass(frozen=True, slots=True)
class Described:
    """An option as an operator sees it.

    ``kind`` says which values it takes, ``meaning`` what it does. Each is None where the policy does not say it.
    """

    name: str
    kind: str | None
    default: object
    is_required: bool
    meaning: str | None = None

    @property
    def default_text(self) -> str:
        """Returns the default as people write it in the settings."""
        return _settings_text(self.default)

    def __str__(self) -> str:
        ends = "required" if self.is_required else f"default {self.default_text}"
        return f"{self.name} ({self.kind}; {ends})" if self.kind is not None else f"{self.name} ({ends})"


@cache  # for a class without a constructor, inspect copies the list of all modules at each call
def describe(policy: type) -> Mapping[str, Described] | None:
    """Returns the options that a policy's constructor takes, by name; None where it takes any."""
    parameters = list(inspect.signature(policy).parameters.values())
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    try:
        hints = get_type_hints(inspect.getattr_static(policy, "__init__"), include_extras=True)
    except Exception:  # Another package's policy may have types that exist only for a type checker.
        hints = {}
    found = {
        parameter.name: Described(
            parameter.name,
            _kind(hints.get(parameter.name)),
            parameter.default,
            is_required=parameter.default is parameter.empty,
            meaning=_meaning(hints.get(parameter.name)),
        )
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    return MappingProxyType(found)


def _kind(hint: Any) -> str | None:
    if metadata := getattr(hint, "__metadata__", ()):
        return str(metadata[0])
    return {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}.get(hint)


def _meaning(hint: Any) -> str | None:
    return next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, str)), None)


def _settings_text(value: object) -> str:
    """Returns a default as people write it in the settings."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _quoted(value: object) -> str:
    return repr(value)[:40]
