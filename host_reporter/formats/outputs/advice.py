"""A pattern that would read a line which no preset knows. Pure."""

from __future__ import annotations

import re

from host_reporter.formats import names
from host_reporter.formats.matching import MAX_MATCHED
from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.prefixes.cleaning import plain

_NAMED = re.compile(rf"(?P<name>[A-Za-z_][\w@./-]{{0,40}}+)(?P<between>[^\w\n.+-]{{1,8}}+)(?P<value>{NUMBER})(?![\w.])")
_WHOLE = re.compile(r"\d+")


def suggestion(line: str) -> str | None:
    """Returns a pattern of a job file that matches the line, with its first whole number as the iteration, and with the
    number behind a metric's name, or the last number, as the metric; None where the line has no whole number.
    """
    text = plain(line)[:MAX_MATCHED]
    pairs = list(_NAMED.finditer(text))
    counter = next((pair for pair in pairs if _WHOLE.fullmatch(pair["value"])), None)
    if counter is None:
        return None
    later = [pair for pair in pairs if pair.start() > counter.start()]
    metric = next((pair for pair in later if names.direction(pair["name"]) is not None), None)
    pattern = _part(counter, r"(?P<iteration>\d+)")
    if metric is not None:
        pattern += ".*?" + _part(metric, r"(?P<metric>[^\s,;]+)")
    return pattern if re.search(pattern, text) is not None else None


def _part(pair: re.Match[str], group: str) -> str:
    between = re.sub(r"(?:\\\s|\s)+", r"\\s+", re.escape(pair["between"]))
    return re.escape(pair["name"]) + between + group
