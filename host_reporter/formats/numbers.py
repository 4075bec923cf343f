"""Numbers and times as people and programs write them. Pure."""

from __future__ import annotations

import math
import re
from datetime import datetime

from host_reporter.formats.events import MAX_TIME

NUMBER = (
    r"[-+]?(?:(?:\d++(?>(?:[,_]\d++)*)(?:\.\d++)?|\.\d++)(?:[eE][-+]?\d++)?(?:[kKMGB](?![A-Za-z]))?%?"
    r"|(?i:nan|inf(?:inity)?)(?![A-Za-z]))"
)
"""A regular expression for a number in a preset's pattern. ``number`` reads what it matches. It needs linear time.

Before Python 3.11.5 a possessive group takes characters of a repetition that fails
(https://github.com/python/cpython/issues/106052): the comma of ``10, ``. So its group is atomic.
"""

NUMBER_ENDS = r"(?!\w|:\w|\.\d)"
"""What stands behind a number that is whole: no digit, nor a colon or a point with one behind it, as in a time."""

_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}
_WRAPPED = re.compile(r"(?:[A-Za-z_][\w.]{0,40})\(([^(),\s]{1,60})[^()]{0,200}\)")
"""How Python prints a tensor or a NumPy number: tensor(0.5, device='cuda:0'), np.float64(0.5)."""
_PLAIN = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+")
_WITH_POINT = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+\.\d*")
_EUROPEAN = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+,\d+")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
_UNDERSCORES = re.compile(r"[-+]?\d{1,3}(?:_\d{3})+(?:\.\d+)?")
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
MAX_CHARACTERS = 80


def number(value: object) -> float | None:
    """Returns a number as people write it; None where it is none. It may be nan or infinite.

    ``85.3%`` is 85.3: a target is then written as the log shows it, and a pattern means the same whether its group
    includes the sign or not. t90 needs only the shape of a curve, which is the same. ``1,234.5`` and ``1.234,5`` are
    1234.5. ``0,853`` and ``12,5`` have a decimal comma; ``1,234`` has a comma between thousands, since it has three
    digits behind it and no zero before. ``12k`` is 12000 (k, M, G and B). Quotes, a trailing comma and what Python
    prints around a tensor's number are left out. A bool is no number.
    """
    if isinstance(value, str):
        return _of_text(value) if len(value) <= MAX_CHARACTERS * 4 else None
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def finite(value: object) -> float | None:
    """Returns a number that is finite; None for anything else."""
    found = number(value)
    return found if found is not None and math.isfinite(found) else None


def moment(value: object) -> float | None:
    """Returns seconds since the epoch out of a number or a date; None where it is neither.

    A number above 10^11 counts milliseconds, one above 10^14 microseconds. A date is as in ISO 8601, and local unless
    it names its zone.
    """
    seconds = finite(value)
    if seconds is None:
        return _date(value) if isinstance(value, str) else None
    for scale in (1e14, 1e11):
        if seconds > scale:
            seconds /= scale / 1e8
            break
    return seconds if 0 <= seconds <= MAX_TIME else None


def _date(text: str) -> float | None:
    try:
        seconds = datetime.fromisoformat(text.strip().replace("/", "-").replace(",", ".")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if 0 <= seconds <= MAX_TIME else None


def _of_text(text: str) -> float | None:
    if text.isascii() and _PLAIN.fullmatch(text) and math.isfinite(found := float(text)):
        return found
    bare = text.strip().rstrip(",;").strip("'\"` ")
    if wrapped := _WRAPPED.fullmatch(bare):
        bare = wrapped[1].rstrip(",").strip("'\"")
    bare = bare.removesuffix("%").rstrip()
    if not bare or len(bare) > MAX_CHARACTERS:
        return None
    sign, word = (-1.0, bare[1:]) if bare[0] == "-" else (1.0, bare.removeprefix("+"))
    if (special := _NOT_FINITE.get(word.lower())) is not None:
        return sign * special
    scale = _SCALES.get(bare[-1], 0.0)
    if scale:
        bare = bare[:-1]
    plain = _without_separators(bare)
    if plain is None:
        return None
    found = float(plain) * (scale or 1.0)
    # Digits that are too many for a float are no measurement, and no divergence either.
    return found if math.isfinite(found) else None


def _without_separators(text: str) -> str | None:
    """Returns the number as Python writes it; None where it is none."""
    if _PLAIN.fullmatch(text) and text.isascii():
        return text
    if not text.isascii():
        return None
    if _WITH_POINT.fullmatch(text) or _THOUSANDS.fullmatch(text):
        return text.replace(",", "")
    if _EUROPEAN.fullmatch(text):
        return text.replace(".", "").replace(",", ".")
    if _DECIMAL_COMMA.fullmatch(text):
        return text.replace(",", ".")
    return text.replace("_", "") if _UNDERSCORES.fullmatch(text) else None
