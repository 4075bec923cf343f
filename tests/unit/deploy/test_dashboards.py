"""The dashboards as files: what Grafana needs of each panel, and what who looks at it needs."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.deploy.dashboards import FILES, expressions, panels
from tests.support.paths import ROOT

# Those that the dashboards use, of https://github.com/grafana/grafana/blob/main/packages/grafana-data/src/valueFormats/categories.ts
UNITS = {"none", "short", "s", "bytes", "bps", "ops", "reqps", "percentunit", "dateTimeFromNow"}
KINDS = {"bargauge", "stat", "state-timeline", "timeseries"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def file(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def board(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text()))


def test_both_are_there() -> None:
    assert [file.stem for file in FILES] == ["trainyard-jobs", "trainyard-operation"]


def test_a_dashboard_can_be_imported_for_any_prometheus(file: Path, board: dict[str, Any]) -> None:
    assert board["uid"] == file.stem
    assert board["id"] is None, "the number is the importing Grafana's"
    assert board["schemaVersion"] == 39
    assert board["title"] and board["description"]
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource" and variables["datasource"]["query"] == "prometheus"
    assert list(variables)[:2] == ["datasource", "instance"], "the source is chosen first"
    for name in variables.keys() - {"datasource"}:
        assert variables[name]["datasource"] == SOURCE
        assert variables[name]["allValue"] == ".*"


def test_a_panel_says_what_it_shows_in_which_unit(file: Path) -> None:
    for panel in panels(file):
        assert panel["type"] in KINDS, panel["title"]
        assert panel["title"] and panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert panel["datasource"] == SOURCE
        letters = [target["refId"] for target in panel["targets"]]
        assert letters and len(set(letters)) == len(letters)
        for target in panel["targets"]:
            assert target["datasource"] == SOURCE
            assert target["legendFormat"]
            assert target["expr"].count('instance=~"$instance"') == len(re.findall(r"\{", target["expr"]))


def test_panels_have_numbers_of_their_own_and_do_not_overlap(board: dict[str, Any]) -> None:
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in combinations(places, 2):
        apart_x = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        apart_y = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert apart_x or apart_y, (a, b)


def test_the_alerts_that_panels_name_exist() -> None:
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    named = {
        word
        for file in FILES
        for panel in panels(file)
        for word in re.findall(r"Trainyard[A-Z]\w+", panel["description"])
    }
    assert named <= alerts
    assert len(named) > 15


def test_times_are_rates_over_what_grafana_shows() -> None:
    for where, expression in expressions("INTERVAL"):
        assert set(re.findall(r"\[([^\]]*)\]", expression)) <= {"INTERVAL"}, where
        assert "$" not in expression, where
