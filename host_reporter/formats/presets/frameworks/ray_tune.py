"""Ray Tune's console: the table of a trial's result, and what the trials print themselves.

``Trial train_f1282_00000 started with configuration:`` begins a trial. A result is a table of names and values, among
them ``training_iteration``. Trials that run at the same time mix: the files of one trial tell its curve.
"""

from __future__ import annotations

import re

from host_reporter.formats import names
from host_reporter.formats.numbers import NUMBER, finite, number
from host_reporter.formats.preset import Preset
from host_reporter.formats.presets import general
from host_reporter.formats.reading import Reading

_ROW = re.compile(rf"[│|]\s{{1,4}}(?P<name>[A-Za-z_][\w/.@-]{{0,60}}+)\s{{1,80}}+(?P<value>{NUMBER})\s{{0,8}}[│|]$")
_STARTED = re.compile(r"Trial \S{1,100} started with")
_SUMMARY = re.compile(r"[│|╭╰├+]|Trial |Current |Logical |Memory usage |== Status")
"""The beginnings of lines that are of several trials, or of none."""


def read(text: str) -> Reading | None:
    """Returns what a line says: a row of a result, the begin of a trial, or progress that a trial prints."""
    if _STARTED.match(text) is not None:
        return Reading(begun=True)
    row = _ROW.match(text)
    if row is None:
        return None if _SUMMARY.match(text) is not None else general.read(text)
    if row["name"] == "training_iteration":
        return Reading(iteration=finite(row["value"]))
    value = number(row["value"])
    return Reading(metrics={row["name"]: value}) if value is not None and names.direction(row["name"]) else None


PRESET = Preset(
    name="ray-tune",
    title="Ray Tune",
    source="https://docs.ray.io/en/latest/tune/tutorials/tune-output.html",
    marks=r"^[│|]\s{1,4}training_iteration\s{1,80}\d|^[│|] Configuration for experiment\s"
    r"|^Trial \S{1,100} started with",
    read=read,
)
