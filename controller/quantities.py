"""Numbers with their units, as people read them, on terminals and in sentences as in the console. Pure."""

from __future__ import annotations

import math

SLOWER = 0.95
"""Below this share of another pace a job is slower. ``controller/console/js/pages/job/why.js`` has the same."""
_A_SECOND, _A_MINUTE = 0.1, 0.1 / 60
"""A pace below these is told by the minute, and by the hour."""


def duration(seconds: float) -> str:
    """Returns a length of time with the units that people use for it: 250 ms, 4.2 s, 3 min 20 s, 5 h, 3 d 4 h.

    It has three digits, and two where it is a few seconds. ``controller/console/js/ui/format.js`` has the same rule.
    """
    if seconds == 0 or not math.isfinite(seconds):
        return f"{seconds:z.0f} s"
    return ("-" if seconds < 0 else "") + _size(abs(seconds))


def _size(seconds: float) -> str:
    # The limits are where a number would be rounded to 1000 of its unit, or to 60.
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.3g} s"
    if seconds < 3599.5:
        return _parts(round(seconds), 60, "min", "s")
    if seconds < 86_370:
        return _parts(round(seconds / 60), 60, "h", "min")
    return _parts(round(seconds / 3600), 24, "d", "h")


def _parts(value: int, size: int, large: str, small: str) -> str:
    whole, rest = divmod(value, size)
    return f"{whole} {large} {rest} {small}" if rest else f"{whole} {large}"


def percent(share: float, digits: int = 0) -> str:
    """Returns a share in percent, with so many digits behind the point. What is rounded to nothing has no sign."""
    return f"{100 * share:z.{digits}f} %"


def pace(per_second: float, unit: str) -> str:
    """Returns a pace: "1.2 iterations/s", "1 iteration/s", by the minute or hour if slow; without a unit "1/s".

    ``controller/console/js/ui/format.js`` has the same rule.
    """
    by_second = per_second >= _A_SECOND or per_second == 0
    times, each = (1, "s") if by_second else (60, "min") if per_second >= _A_MINUTE else (3600, "h")
    number = per_second * times
    text = f"{number:.2g}" if number < 10 else f"{number:,.0f}"
    units = unit if text == "1" else f"{unit}s"
    return f"{text} {units}/{each}" if unit else f"{text}/{each}"
