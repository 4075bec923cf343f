"""How the errors on plans add up, from results whose errors are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from evaluation.deepprophet import claim
from evaluation.deepprophet.arms import GroupResult
from evaluation.deepprophet.plans import cases, errors
from evaluation.deepprophet.plans.groups import PlanGroup
from evaluation.deepprophet.plans.measuring import PlanResult, Predicted
from topologies.errors import LabError

CASES = {case.name: case for case in cases.cases()}
Results = list[tuple[PlanGroup, PlanResult]]


def measured(name: str, predicted: float, *runs: float, cores: int = 2) -> Results:
    """A case whose last run is after the calibration; the interval is a fifth to either side."""
    group = PlanGroup(CASES[name])
    said = Predicted(predicted, 0.8 * predicted, 1.2 * predicted, 2e6, 4.0)
    results: Results = [(replace(group, is_first=True), PlanResult(cores, run, 2.1e6)) for run in runs[:-1]]
    return [*results, (group, PlanResult(cores, runs[-1], 2.1e6, said, "digest"))]


def results() -> Results:
    return [
        *measured("plan-fsdp-gpt", 1.1, 0.9, 1.1), *measured("plan-fsdp-mlp", 0.7, 1.0, 1.0),
        *measured("plan-checkpoint-gpt", 1.0, 1.0),
    ]  # fmt: skip


def test_a_plan_has_the_mean_over_its_models() -> None:
    found = errors.add_up(results())
    assert list(found["plans"]) == ["fsdp", "checkpoint"]
    fsdp = found["plans"]["fsdp"]
    assert (fsdp["models"], fsdp["in_interval"]) == (2, 0.5)
    assert fsdp["mean_absolute_error"] == pytest.approx(0.2)
    assert fsdp["worst"] == pytest.approx(0.3)
    assert found["plans"]["checkpoint"]["mean_absolute_error"] == 0.0
    first, second, third = found["rows"]
    assert (first["measured"], first["measured_twice"]) == (pytest.approx(1.0), pytest.approx(0.2))
    assert (first["error"], second["error"]) == (pytest.approx(0.1), pytest.approx(-0.3))
    assert (first["sent"], first["predicted"]["bytes"]) == (2.1e6, 2e6)
    assert third["measured_twice"] is None


def test_ranks_that_share_cores_count_apart() -> None:
    found = errors.add_up([*measured("plan-fsdp-gpt", 1.1, 1.0, 1.0), *measured("plan-fsdp-mlp", 9.0, 1.0, cores=1)])
    assert found["plans"]["fsdp"]["models"] == 1
    assert found["plans"]["fsdp"]["mean_absolute_error"] == pytest.approx(0.1)
    assert found["plans"]["fsdp, more ranks than cores"]["mean_absolute_error"] == pytest.approx(8.0)


def test_plans_are_a_part_of_the_summary_and_change_no_other_figure() -> None:
    calibration = (claim.Group(None, ()), GroupResult(2, calibration={"device": "a CPU"}, calibrated="digest"))
    without, fields = claim.add_up([calibration]), claim.add_up([calibration, *results()])
    assert {name for name in fields if fields[name] != without[name]} == {"plans"}
    entries = {entry["claim"]: entry for entry in claim.headline(fields)}
    assert len(entries) == 2
    for name, entry in entries.items():
        assert "plans" in name
        assert (entry["metric"], entry["unit"], entry["baseline"]) == ("mean_absolute_error", "share", None)
    (fsdp,) = (entry["value"] for name, entry in entries.items() if "fsdp, 2 models" in name)
    assert fsdp == pytest.approx(0.2)
    assert claim.headline(without) == []


def test_plans_of_another_calibration_are_refused() -> None:
    calibration = (claim.Group(None, ()), GroupResult(2, calibrated="another"))
    with pytest.raises(LabError, match="different calibrations"):
        claim.add_up([calibration, *results()])


def test_tables() -> None:
    console = Console(record=True, width=200)
    for table in errors.tables(errors.add_up(results())):
        console.print(table)
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in console.export_text().splitlines()]
    for row in (
        ["fsdp", "gpt", "2", "1000 Mbit/s", "1000.0", "1100.0", "880.0 to 1320.0", "+10.0%", "20.0%"],
        ["checkpoint", "gpt", "1", "-", "1000.0", "1000.0", "800.0 to 1200.0", "+0.0%", "-"],
        ["fsdp", "mlp", "2.10", "2.00"],
        ["fsdp", "2", "20.0%", "30.0%", "50%"],
    ):
        assert row in lines
    assert ["checkpoint", "gpt", "2.10", "2.00"] not in lines
    assert list(errors.tables(errors.add_up([]))) == []
