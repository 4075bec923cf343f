"""Presets by name, found through the entry-point group ``trainyard.formats``. They are loaded when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from host_reporter.formats.matching import Matcher, PatternError
from host_reporter.formats.preset import Preset

GROUP = "trainyard.formats"

GENERAL = "general"
"""The preset that guesses; it is asked when no other one is sure."""

AUTO = "auto"
"""What a job file calls the recognition."""


class FormatError(ValueError):
    """An unknown format; the message is for the operator."""


def loaded(entries: tuple[EntryPoint, ...]) -> tuple[Mapping[str, Matcher], Mapping[str, str]]:
    """Returns the presets that can be used by their names, and for each other one the reason why not."""
    usable: dict[str, Matcher] = {}
    broken: dict[str, str] = {}
    for entry in sorted(entries, key=lambda entry: entry.name):
        try:
            usable[entry.name] = _matcher(entry)
        except Exception as error:  # A broken package must not take the other presets away.
            broken[entry.name] = f"format {entry.name} = {entry.value} is left out: {type(error).__name__}: {error}"
    return usable, broken


def _matcher(entry: EntryPoint) -> Matcher:
    preset = entry.load()
    if not isinstance(preset, Preset):
        raise PatternError("it is no Preset")
    if preset.name != entry.name or preset.name == AUTO:
        raise PatternError(f"its name is {preset.name!r}, and its entry point's {entry.name!r}")
    return Matcher(preset)


@cache
def _installed() -> tuple[Mapping[str, Matcher], Mapping[str, str]]:
    return loaded(tuple(entry_points(group=GROUP)))


def available() -> Mapping[str, Matcher]:
    """Returns each installed preset by its name, without those that cannot be used."""
    return _installed()[0]


def faults() -> tuple[str, ...]:
    """Returns a sentence for each preset that cannot be used."""
    return tuple(_installed()[1].values())


def of_name(name: str) -> Matcher:
    """Returns the preset of this name. Raises FormatError, which says what there is."""
    found, broken = _installed()
    if name in broken:
        raise FormatError(broken[name])
    if name not in found:
        raise FormatError(f"unknown format {name!r}; there are: {', '.join((AUTO, *found))}")
    return found[name]
