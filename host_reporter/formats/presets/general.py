"""Guesses from the names that all logs use: step, iter, update, batch, epoch; loss, accuracy and so on."""

from __future__ import annotations

import re
from functools import lru_cache

from host_reporter.formats import names
from host_reporter.formats.numbers import NUMBER, NUMBER_ENDS, finite, number
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
    r"|(?<![a-z])(?:m?s|secs?|seconds?|time|samples|tokens|images|imgs)/$"
)
"""What stands before a number that is no progress: a setting, as in ``Total optimization steps = 345``, or a speed, as
in ``ms/batch 12.5``."""
_PART = rf"\s{{0,8}}(?P<step>{NUMBER})\s{{0,2}}/\s{{0,8}}(?P<of>{NUMBER})"
_IN_EPOCH = (
    # Epoch: [3][ 10/500], and mmengine's Epoch(train) [3][ 10/500]
    re.compile(rf"(?:(?i:epoch)(?:\(train\))?:?\s{{0,4}}\[(?P<epoch>\d{{1,9}})(?:/\d{{1,9}})?)\]\s?\[{_PART}"),
    # [0/25][50/1583], and | epoch   3 |   200/ 2983 batches |
    re.compile(rf"^\[(?P<epoch>\d{{1,9}})/(?P<epochs>\d{{1,9}})\]\s?\[{_PART}"),
    re.compile(rf"(?i:epoch)\s{{1,4}}(?P<epoch>\d{{1,9}})\s{{0,4}}\|{_PART} batches"),
    # Train Epoch: 3 [640/60000 (1%)], Train: 3 [ 10/500 ( 2%)] and epoch 003:  10 / 500
    re.compile(rf"(?i:epoch|train):?\s{{1,4}}(?P<epoch>\d{{1,9}}):?\s{{1,8}}\[?{_PART}(?![\w.])"),
)
_BARS = (
    re.compile(rf"(?P<epochs>(?i:epochs?):?\s{{0,4}})?\d{{1,3}}%\|[^|]{{0,200}}\|{_PART} \["),
    re.compile(rf"^{_PART}\s{{1,4}}(?:\[[=>.]|[\u2500-\u259f])"),
)
"""Bars of tqdm and of Keras. One of tqdm's may count epochs: ``Epoch: 33%|...| 1/3 [``."""
_LEADING = re.compile(
    r"^\[\s{0,8}(?:(?P<epoch>\d{1,9}),\s{1,8})?(?P<step>\d{1,15})(?:/\s{0,8}(?P<of>\d{1,15}))?\](?:/\d+)?\s"
)
"""``[10]  train-rmse:0.5``, with the length ``[ 10/500] loss: 0.5``, and with the epoch ``[1,  2000] loss: 2.2``"""
_VALUE = re.compile(rf"[\"']?(?:\s|:|=|\bis\b|\bof\b|\(){{1,6}}(?:tensor\()?[\"']?(?P<value>{NUMBER}){NUMBER_ENDS}")
_METRIC = re.compile(r"(?<![\w./@-])[A-Za-z_][\w./@-]{0,60}+")
_OTHER_LOOPS = re.compile(
    r"(?i)\b(?:valid(?:at(?:ion|ing))?|val|eval(?:uat(?:ion|ing))?|test(?:ing)?|predict(?:ing)?|sanity)\b"
)
_LOADING = re.compile(
    r"(?i)\b(?:datasets?|splits?|shards?|files?|map|(?:token|download|load|process|convert|writ|sav|filter|cach)\w{0,6})\b"
)
"""What a bar says of what is done before and after a training."""
_TRAINING = re.compile(r"(?i)(?<![a-z])train")
_ENOUGH = 12


@lru_cache(maxsize=2)
def read(text: str) -> Reading | None:
    """Returns what a line says by the names in it; None where no counter stands beside a number, and no metric.

    Other presets ask it, too: the latest lines are kept, so that each is gone through once.
    """
    is_other = _OTHER_LOOPS.search(text) is not None and _TRAINING.search(text) is None
    metrics = _metrics(text)
    if is_other:
        metrics = {
            name if names.is_validation(name) else f"validation {name}": value for name, value in metrics.items()
        }
    counters = _counters(text, is_other=is_other, has_metrics=bool(metrics))
    if "epoch" not in counters and "of" in counters and "bar" not in counters:
        counters["total"] = counters.pop("of")
    if not counters.keys() & {"step", "epoch"} and not metrics:
        return None
    return counted(counters, metrics=metrics)


def _counters(text: str, *, is_other: bool, has_metrics: bool) -> dict[str, float | None]:
    """Returns what counts in a line. Of a validation the steps do not."""
    counters: dict[str, float | None] = {}
    part = _first(_IN_EPOCH, text)
    if part is not None and not is_other:
        return {name: finite(value) for name, value in part.groupdict().items()}
    for match in _COUNTER.finditer(text):
        # A share is the bar's: ``steps: 12%|...| 12/100``.
        is_share = match["value"].endswith("%")
        if not is_share and _NO_COUNTER.search(text[max(0, match.start() - 40) : match.start()]) is None:
            _note(counters, match["name"].lower(), finite(match["value"]), finite(match["of"]))
    if "step" not in counters and not is_other:
        if (bar := _first(_BARS, text)) is not None and _LOADING.search(text[: bar.start()]) is None:
            names_of = ("epoch", "epochs") if bar.groupdict().get("epochs") else ("step", "of")
            counters |= dict(zip(names_of, (finite(bar["step"]), finite(bar["of"])), strict=True)) | {"bar": None}
        elif has_metrics and "epoch" not in counters and (leading := _LEADING.match(text)) is not None:
            counters |= {name: finite(value) for name, value in leading.groupdict().items() if value is not None}
    return counters


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> re.Match[str] | None:
    return next((match for pattern in patterns if (match := pattern.search(text)) is not None), None)


def _note(counters: dict[str, float | None], name: str, value: float | None, of: float | None) -> None:
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
    source="",
    read=read,
    validates=False,
)
