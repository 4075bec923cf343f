"""Each preset that has no recording has a sample, is recognised by it, and reads from it what stands beside it."""

from __future__ import annotations

import json
import re

import pytest

from host_reporter.formats import registry
from host_reporter.formats.prefixes.cleaning import Cleaner
from tests.support.agent.logs import SAMPLES, parsed
from tests.support.agent.recorded_logs import FILES


@pytest.mark.parametrize("name", sorted(registry.available().keys() - FILES.keys()))
def test_a_sample_is_recognised_and_read(name: str) -> None:
    samples = [path for path in SAMPLES.iterdir() if path.name.startswith(f"{name}.") and path.suffix != ".expected"]
    assert samples, f"tests/data/logs has no sample {name}.log"
    expected = json.loads((SAMPLES / f"{name}.expected").read_text())
    for sample in samples:
        found = parsed(sample)
        assert (found.described.preset, found.described.is_guess) == (name, name == registry.GENERAL)
        assert (found.described.metric, found.described.direction) == (expected["metric"], expected["direction"])
        assert found.described.iterations == expected["iterations"]
        assert [(point.iteration, point.metric) for run in found.runs for point in run] == [
            tuple(point) for point in expected["points"]
        ]
        assert found.problem is None or expected["problem"] in found.problem


@pytest.mark.parametrize("name", sorted(registry.available()))
def test_a_sample_proves_no_other_preset_than_those_it_is_built_on(name: str) -> None:
    presets = registry.available()
    for sample in SAMPLES.glob(f"{name}.log"):
        for line in re.split(r"[\r\n]+", sample.read_text()):
            text = (Cleaner().feed(line) or pytest.fail()).text
            sure = {other.name for other in presets.values() if other.is_sure(text, other.read(text))}
            assert sure - {name} <= set(presets[name].preset.beats), line


def test_all_presets_can_be_used_and_say_where_their_format_is_documented() -> None:
    assert registry.faults() == ()
    for matcher in registry.available().values():
        assert matcher.preset.title
        source = matcher.preset.source
        assert source == "recorded" or source.startswith("https://") or matcher.name == registry.GENERAL
        assert all(name in registry.available() for name in matcher.preset.beats)
