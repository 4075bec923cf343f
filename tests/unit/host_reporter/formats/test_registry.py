"""Presets are found by entry point; one that cannot be used is said and takes no other away."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from host_reporter.formats import registry
from host_reporter.formats.preset import Pattern, Preset
from host_reporter.formats.registry import GROUP, FormatError

WRONG_PATTERN = Preset(name="wrong", title="", source="recorded", patterns=(Pattern(regex="("),))
WRONG_NAME = Preset(name="another", title="", source="recorded")


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def test_a_faulty_package_takes_no_other_preset_away() -> None:
    here = __name__
    usable, broken = registry.loaded(
        (
            entry("general", "host_reporter.formats.presets.general:PRESET"),
            entry("gone", "no_such_module:PRESET"),
            entry("wrong", f"{here}:WRONG_PATTERN"),
            entry("misnamed", f"{here}:WRONG_NAME"),
            entry("none", "json:dumps"),
        )
    )
    assert list(usable) == ["general"]
    assert {"gone", "wrong", "misnamed", "none"} == set(broken)
    assert "no_such_module" in broken["gone"]
    assert "preset wrong" in broken["wrong"]
    assert "'another'" in broken["misnamed"]
    assert "no Preset" in broken["none"]


def test_an_unknown_format_is_said_with_those_there_are() -> None:
    with pytest.raises(FormatError, match=r"there are: auto, .*general"):
        registry.of_name("none")


def test_the_agent_starts_without_loading_presets() -> None:
    code = "import sys, host_reporter.agent; print([m for m in sys.modules if 'formats.presets' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
