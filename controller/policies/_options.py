"""Options of policies: what an operator gave, as numbers that no plan can stumble over later."""

from __future__ import annotations

import math

MOST = 1e9


def number(name: str, value: object, low: float = 0.0, high: float = MOST, *, above: bool = False) -> float:
    """``value`` as a float from ``low`` (not itself, where ``above``) to ``high``; raises ValueError for all else.

    Truth values, texts, NaN, infinities and integers too large for a float are none.
    """
    wanted = f"it must be a number {'above' if above else 'from'} {low:g} {'and at most' if above else 'to'} {high:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name}: {str(value)[:40]!r}; {wanted}")
    try:
        found = float(value)
    except OverflowError:
        raise ValueError(f"{name}: the number is too large; {wanted}") from None
    if not math.isfinite(found) or not low <= found <= high or (above and found == low):
        raise ValueError(f"{name}: {found:g}; {wanted}")
    return found


def whole(name: str, value: object, low: int, high: int) -> int:
    """``value`` if it is an integer from ``low`` to ``high``; raises ValueError for all else, truth values too."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name}: {str(value)[:40]}; it must be a whole number from {low} to {high}")
    return value
