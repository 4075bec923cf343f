"""The changes of the bench of reloads are what a running controller can do, or refuses; and what they may touch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.config.config import Config, ConfigError, load_config
from controller.reload.difference import changes
from evaluation.bench.reloads.bench import figures
from evaluation.bench.reloads.changes import CHANGES, SINGLE, TOGETHER, WRONG, Change
from evaluation.bench.reloads.streams import Numbered
from evaluation.bench.reloads.window import Reload, Window, expected_floors

HOSTS = [
    {
        "name": f"h{i}",
        "address": f"10.0.0.{i}",
        "ingress_bps": 10e6,
        "egress_bps": 10e6,
        "switch": (i + 1) // 2,
        "port": 2 - i % 2,
    }
    for i in range(1, 7)
]
LINKS = [{"a": leaf, "a_port": 3, "b": 4, "b_port": leaf, "rate_bps": 10e6} for leaf in (1, 2, 3)]
SETTINGS: dict[str, Any] = {"policy": "fifo", "forwarding": "paths", "hosts": HOSTS, "links": LINKS}


def load(settings: dict[str, Any], folder: Path) -> Config:
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump(settings))
    return load_config(path)


@pytest.mark.parametrize("change", [*SINGLE, TOGETHER], ids=lambda change: change.name)
def test_a_change_is_of_its_fields_and_needs_no_restart(change: Change, tmp_path: Path) -> None:
    found = changes(load(SETTINGS, tmp_path), load(change.of(SETTINGS), tmp_path))
    assert change.fields is not None
    in_settings = {field for field in change.fields if not field.startswith("api.tokens_file:")}
    assert {each.field for each in found} == in_settings
    assert not any(each.needs_restart for each in found)


def test_what_is_wrong_is_refused_by_the_settings_or_for_a_job(tmp_path: Path) -> None:
    *by_settings, for_a_job = WRONG
    for change in by_settings:
        with pytest.raises(ConfigError, match=change.refusal):
            load(change.of(SETTINGS), tmp_path)
    assert "h3" not in {host.name for host in load(for_a_job.of(SETTINGS), tmp_path).hosts}


def test_a_change_leaves_the_settings_that_it_is_of() -> None:
    before = yaml.safe_dump(SETTINGS)
    for change in CHANGES:
        change.of(SETTINGS)
    assert yaml.safe_dump(SETTINGS) == before


def test_a_change_may_touch_the_rules_that_it_concerns() -> None:
    may = {change.name: change.may_touch for change in CHANGES}
    assert may["a host is removed"]("s1 table=2, ip,nw_dst=10.0.0.2 actions=output:2")
    assert not may["a host is removed"]("s1 table=2, ip,nw_dst=10.0.0.20 actions=output:2")
    assert may["policy"]("s3 table=1, tcp,tp_dst=5002 actions=set_queue:1")
    assert not may["policy"]("s1 table=1, tcp,tp_dst=5000 actions=set_queue:1")
    assert not may["floors"]("s3 table=1, tcp,tp_dst=5002 actions=set_queue:1")


def test_floors_are_shares_of_the_rates_in_the_settings() -> None:
    before, after = expected_floors(SETTINGS), expected_floors(TOGETHER.of(SETTINGS))
    assert len(before) == 12
    assert before["s1-eth1"] == {0: 1e6} | dict.fromkeys(range(1, 8), 100000.0)
    assert after["s1-eth1"] == {0: 2e6} | dict.fromkeys(range(1, 8), 200000.0)
    assert after["s3-eth2"] == after["s4-eth3"] == before["s1-eth1"]
    assert "s1-eth2" not in after


def test_a_figure_counts_packets_that_are_lost_or_late() -> None:
    reloads = [Reload("floors", 200, 0.5, 2.5, back=False), Reload("wrong", 422, 0.25, None, back=False)]
    seen = Window(reloads=reloads, numbered={1: Numbered(10, 9, 2), 2: Numbered(5, 5, 0)}, refused=1, broke=2)
    by_metric = {figure.metric: figure for figure in figures(seen, Window(numbered={1: Numbered(4, 4, 0)}))}
    assert (by_metric["lost"].value, by_metric["lost"].baseline) == (3, 0)
    assert by_metric["requests"].value == 3
    assert by_metric["refused"].baseline == 1
    assert (by_metric["answer"].value, by_metric["answer"].baseline) == (500, 375)
    assert by_metric["floors"].value == 2500
    assert {metric for metric, figure in by_metric.items() if not figure.holds} == {"lost", "requests", "floors"}
    assert all(math.isnan(end) for figure in by_metric.values() for end in figure.ci95)
