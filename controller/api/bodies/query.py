"""The query of a request: each parameter at most once, and numbers in decimal digits."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl

from controller.api.errors import summary
from controller.api.http import HttpError

MAX_QUERY = 20
"""Limits the number of parameters of a query."""
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_REAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")


def parse(text: str) -> dict[str, str]:
    """Returns the parameters of a query by name. Raises HttpError for duplicates and for what is not UTF-8."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_QUERY, errors="strict")
    except UnicodeDecodeError:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the query is not UTF-8, percent-encoded") from None
    except ValueError:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"the query has more than {MAX_QUERY} parameters") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        names = [name for name, _ in pairs]
        raise _invalid([(name[:40], "given twice; keep one") for name in parameters if names.count(name) > 1])
    return parameters


def check_known(query: Mapping[str, str], known: Collection[str]) -> None:
    """Raises HttpError that names each parameter that a call does not have."""
    there_are = ", ".join(known) or "none"
    if unknown := sorted(query.keys() - set(known)):
        raise _invalid([(name[:40], f"unknown query parameter; there are: {there_are}") for name in unknown])


def number(query: Mapping[str, str], name: str, low: float, high: float, default: float) -> float:
    """Returns the value of a numeric parameter, or ``default`` if it is not given.

    Raises HttpError if it is not a plain decimal number from ``low`` to ``high``.
    """
    text = query.get(name)
    if text is None:
        return default
    if _DECIMAL.fullmatch(text) is None or not low <= float(text) <= high:
        raise _invalid([(name, f"{text[:20]!r} is no number from {low:g} to {high:g}, such as {default:g} or 2.5")])
    return float(text)


def real(query: Mapping[str, str], name: str, low: float, high: float) -> float | None:
    """Returns the value of a parameter that may be negative and have an exponent, or None if it is not given.

    Raises HttpError as ``number``.
    """
    text = query.get(name)
    return None if text is None else _real(text, name, low, high)


def reals(query: Mapping[str, str], name: str, low: float, high: float, *, most: int) -> tuple[float, ...]:
    """Returns the values of a parameter, which commas separate; none if it is not given.

    Raises HttpError as ``number``, and for more than ``most`` values.
    """
    texts = query[name].split(",") if name in query else []
    if len(texts) > most:
        raise _invalid([(name, f"{len(texts)} numbers; {most} are the most")])
    return tuple(_real(text, name, low, high) for text in texts)


def _real(text: str, name: str, low: float, high: float) -> float:
    if _REAL.fullmatch(text) is None or not low <= float(text) <= high:
        usual = f"above 0 and up to {high:g}, such as 2 or 0.5" if low > 0 else f"from {low:g} to {high:g}, such as 0.9"
        raise _invalid([(name, f"{text[:20]!r} is no number {usual}")])
    return float(text)


def integer(query: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    """Returns the value of an integer parameter, or None if it is not given. Raises HttpError as ``number``."""
    text = query.get(name)
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,15}", text) is None or not low <= int(text) <= high:
        raise _invalid([(name, f"{text[:20]!r} is no whole number from {low} to {high}")])
    return int(text)


def _invalid(errors: list[tuple[str, str]]) -> HttpError:
    return HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, summary(errors), errors=errors)
