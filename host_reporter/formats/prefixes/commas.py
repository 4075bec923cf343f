"""What the commas in the metrics of one file are: between thousands, or before decimals. Pure.

``2,990`` may be both. Other numbers of the same file show it: ``0,998`` and ``12,5`` have a decimal comma; where
``12.5`` or ``1,234.5`` is a metric, the comma is none. Until one of them comes, such a metric is left out.
"""

from __future__ import annotations

import re
from enum import Enum

from host_reporter.formats import names

_METRIC = re.compile(
    r"(?P<name>[A-Za-z_][\w./@-]{0,60}+)[\"']?(?:\s?[:=]\s{0,8}|\s{1,8})[\"']?"
    r"(?P<value>[-+]?\d{1,15}(?:[.,]\d{1,15})+)(?![\w,.]*\d)"
)
_BOTH = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
_DECIMAL = re.compile(r"[-+]?\d{1,15},\d{1,15}")


class Comma(Enum):
    """What a comma in a number is."""

    UNKNOWN = "unknown"
    THOUSANDS = "thousands"
    DECIMAL = "decimal"


class Commas:
    """The commas of one file. What the first telling number shows counts for all after it."""

    def __init__(self) -> None:
        self.kind = Comma.UNKNOWN
        self.ambiguous: str | None = None
        """A number that may be both, as long as nothing shows what it is."""

    def feed(self, text: str) -> tuple[str, frozenset[float]]:
        """Returns a line whose metrics have decimal points, and the values that may be meant otherwise."""
        if self.kind is Comma.THOUSANDS or ("," not in text and self.kind is Comma.DECIMAL):
            return text, frozenset()
        found = [match for match in _METRIC.finditer(text) if names.direction(match["name"]) is not None]
        kind = self._learn([match["value"] for match in found])
        both = [match for match in found if _BOTH.fullmatch(match["value"])]
        if kind is Comma.DECIMAL:
            for match in reversed(found):
                value = match["value"].replace(".", "").replace(",", ".") if "," in match["value"] else match["value"]
                text = text[: match.start("value")] + value + text[match.end("value") :]
            return text, frozenset()
        if kind is Comma.THOUSANDS or not both:
            return text, frozenset()
        self.ambiguous = both[-1]["value"]
        return text, frozenset(float(match["value"].replace(",", "")) for match in both)

    def problem(self) -> str | None:
        """Returns what a person should know: a number that is not read because it may be two."""
        if self.ambiguous is None:
            return None
        small, large = self.ambiguous.replace(",", "."), self.ambiguous.replace(",", "")
        return (
            f"whether a metric of {self.ambiguous} is {small} or {large} is not known before another line shows it, so "
            "it is not reported: print numbers with a decimal point and without commas"
        )

    def reset(self) -> None:
        """The file began anew."""
        self.kind, self.ambiguous = Comma.UNKNOWN, None

    def _learn(self, values: list[str]) -> Comma:
        """Returns what commas are, as far as these numbers or those before show it."""
        if self.kind is Comma.UNKNOWN:
            shown = (_shows(value) for value in values)
            self.kind = next((kind for kind in shown if kind is not Comma.UNKNOWN), Comma.UNKNOWN)
            self.ambiguous = self.ambiguous if self.kind is Comma.UNKNOWN else None
        return self.kind


def _shows(value: str) -> Comma:
    """Returns what one number shows."""
    if "." in value:
        # 1.234,5 has a decimal comma.
        return Comma.DECIMAL if value.rfind(",") > value.rfind(".") else Comma.THOUSANDS
    if value.count(",") > 1:
        return Comma.THOUSANDS
    return Comma.DECIMAL if _DECIMAL.fullmatch(value) and not _BOTH.fullmatch(value) else Comma.UNKNOWN
