"""Guesses from the names that all logs use: step, iter, update, batch, epoch; loss, accuracy and so on."""

from __future__ import annotations

import re

from host_reporter.formats import names
from host_reporter.formats.numbers import NUMBER, finite, number
from host_reporter.formats.preset import Preset
from host_reporter.formats.reading import Reading, counted
from host_reporter.formats.text_pairs import name_before, pairs

_COUNTER = re.compile(
    r"(?i:(?<![a-z])(?P<name>(?:global|train(?:ing)?)?[ _]?"
    rf"(?:steps?|iterations?|iters?|updates?|batch(?:es)?)|epochs?|ep))[\"']?(?:\s{{0,2}}[:=#]|\s{{0,2}}\[|\s{{0,2}}\()?\s{{0,8}}\[?\s{{0,8}}(?P<value>{NUMBER})(?![\w-])"
    rf"(?:\s{{0,2}}(?:/|of)\s{{0,8}}(?P<of>{NUMBER}))?"
)
_NO_COUNTER = re.compile(
    r"(?i)(?:num(?:ber)?|total|max(?:imum)?|min(?:imum)?|warm-?up|every|per|of|each|sav\w{0,5}|log\w{0,5}|accumulation)"
    r"(?:[ _](?:of|optimi[sz]ation|train(?:ing)?|gradient))?[ _]?$"
)
"""What stands before a number of settings, not of progress: ``Total optimization steps = 345``."""
_IN_EPOCH = re.compile(rf"\]\s?\[\s{{0,8}}(?P<step>{NUMBER})\s?/\s{{0,8}}(?P<of>{NUMBER})\]")
"""``Epoch: [3][ 10/500]``"""
_BAR = re.compile(rf"\d{{1,3}}%\|[^|]{{0,200}}\|\s{{0,8}}(?P<step>{NUMBER})/(?P<of>{NUMBER}) \[")
"""A bar of tqdm."""
_VALUE = re.compile(rf"(?:\s|:|=|\bis\b|\bof\b|\(){{1,6}}(?P<value>{NUMBER})(?![\w:])")
_METRIC = re.compile(r"(?<![\w./@-])[A-Za-z_][\w./@-]{0,60}+")
_OTHER_LOOPS = re.compile(
    r"(?i)\b(?:valid(?:at(?:ion|ing))?|val|eval(?:uat(?:ion|ing))?|test(?:ing)?|predict(?:ing)?|sanity"
    r"|datasets?|splits?|shards?|files?|map|(?:token|download|load|process|convert|writ|sav|filter|cach)\w{0,6})\b"
)
"""What the bar of another loop, of loading or of saving says."""
_ENOUGH = 12


def read(text: str) -> Reading | None:
    """Returns what a line says by the names in it; None where no counter stands beside a number, and no metric."""
    counters: dict[str, float] = {}
    for match in _COUNTER.finditer(text):
        if _NO_COUNTER.search(text[max(0, match.start() - 40) : match.start()]) is not None:
            continue
        _note(counters, match["name"].lower(), finite(match["value"]), finite(match["of"]))
    bar = _IN_EPOCH.search(text) or (_BAR.search(text) if _OTHER_LOOPS.search(text) is None else None)
    if bar is not None and "step" not in counters:
        _note(counters, "step", finite(bar["step"]), finite(bar["of"]))
    metrics = _metrics(text)
    if "epoch" not in counters and "of" in counters:
        counters["total"] = counters.pop("of")
    if not counters.keys() & {"step", "epoch", "iteration"} and not metrics:
        return None
    return counted(counters, metrics=metrics)


def _note(counters: dict[str, float], name: str, value: float | None, of: float | None) -> None:
    if value is None or value < 0:
        return
    if name.startswith("ep"):
        counters.setdefault("epoch", value)
        if of is not None and of >= value:
            counters.setdefault("epochs", of)
        return
    counters.setdefault("step", value)
    if of is not None and of >= value:
        counters.setdefault("of", of)


def _metrics(text: str) -> dict[str, float]:
    """Returns the values behind names that have a direction."""
    found = {name: value for name, value in pairs(text).items() if names.direction(name) is not None}
    for match in _METRIC.finditer(text):
        if names.direction(match.group()) is None or len(found) >= _ENOUGH:
            continue
        value = _VALUE.match(text, match.end())
        if value is not None and (measured := number(value["value"])) is not None:
            name = name_before(text, match.end()) or match.group()
            if not any(names.same(name, other) for other in found):
                found[name] = measured
    return found


PRESET = Preset(
    name="general",
    title="Names that all logs use",
    source="recorded",
    read=read,
)
