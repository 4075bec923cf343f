"""The claim ``deepprophet``: what it measures, and how errors add up, from results whose errors are known."""

from __future__ import annotations

import argparse
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from rich.console import Console

from deepprophet import command
from evaluation.claim import Setting
from evaluation.deepprophet import arms, claim, processes
from evaluation.deepprophet.arms import CaseResult, GroupResult
from topologies.errors import LabError


def case(batch: int, workers: int, rate: float | None, *, default: float, roofline: float, runs=(1.0,)) -> CaseResult:
    """Predictions relative to the measured seconds; those of the way ``measured`` are exact."""
    ways = {"default": default, "measured": 1.0, "table": 1.25, "roofline": roofline}
    middle = sum(runs) / len(runs)
    predicted = {way: (middle * off, middle * 0.8, middle * 1.2) for way, off in ways.items()}
    wire = 0.75 * middle if rate else 0.0
    return CaseResult(batch, workers, rate, tuple(runs), predicted, 0.5, 0.1, wire, 7.0)


OPERATORS = {
    "count": 3, "same_as_traced": True, "again": 0.02, "measured": {"error": 0.1, "share_of_time": 1.0},
    "table": {"error": None, "share_of_time": 0.0}, "roofline": {"error": 0.4, "share_of_time": 1.0},
}  # fmt: skip


def results() -> list[tuple[claim.Group, GroupResult]]:
    calibration = GroupResult(2, calibration={"device": "a CPU", "torch": "2.13.0"}, calibrated="digest")
    measured = [(claim.Group(None, ()), calibration)]
    for model, off in (("mlp-wide", 0.1), ("resnet18", 0.3)):
        cases = (
            case(8, 1, None, default=1 + off, roofline=1.5, runs=(0.9, 1.1)),
            case(16, 2, 1e9, default=1 - off, roofline=0.5, runs=(2.0, 2.0)),
            case(16, 4, 1e9, default=1 + 2 * off, roofline=2.0),
        )
        requested = tuple(result.case for result in cases)
        # All cases but the last are measured before the calibration, and all are measured after it.
        first = tuple(replace(each, runs=each.runs[:1], predicted={}) for each in cases if len(each.runs) > 1)
        measured.insert(0, (claim.Group(model, requested, is_first=True), GroupResult(2, first)))
        again = tuple(replace(each, runs=each.runs[-1:]) for each in cases)
        result = GroupResult(2, again, (OPERATORS,), predict_seconds=3.0, calibrated=calibration.calibrated)
        measured.append((claim.Group(model, requested), result))
    return measured


def test_the_groups_cover_all_models_batch_sizes_workers_and_rates() -> None:
    everything = [group for group in claim.groups() if isinstance(group, claim.Group)]
    middle = next(place for place, group in enumerate(everything) if group.model is None)
    before, groups = everything[:middle], everything[middle + 1 :]
    assert all(group.is_first for group in before) and not any(group.is_first for group in groups)
    assert [(group.model, group.cases) for group in before] == [(group.model, group.cases) for group in groups]
    named = [group for group in groups if not group.is_drawn]
    assert len(named) >= 12
    assert len(set(claim.MODELS.values())) >= 5
    for group in named:
        assert len({each.batch_size for each in group.cases if each.workers == 1}) >= 2
        assert {each.workers for each in group.cases} == {1, 2, 3, 4}
        assert {each.rate_bps for each in group.cases if each.workers > 1} == set(claim.RATES_BPS)
    names = [group.name for group in claim.groups()]
    assert len(set(names)) == len(names)
    without_others = [group for group in claim.groups(others=False) if isinstance(group, claim.Group)]
    assert {each.workers for group in without_others for each in group.cases} == {1, 2}
    quick = claim.groups(quick=True)
    assert len(quick) < 12
    assert all(group.quick for group in quick)


def test_every_named_model_exists() -> None:
    text = (Path(claim.__file__).parent / "models.py").read_text()
    for name in claim.MODELS:
        assert f'    "{name}": (' in text


def test_errors_add_up_apart_by_ranks_and_cores() -> None:
    fields = claim.add_up(results())
    compute, distributed, more = (fields["kinds"][kind] for kind in claim.KINDS)
    assert compute["ways"]["default"]["mean_absolute_error"] == pytest.approx(0.2)
    assert compute["ways"]["roofline"]["mean_absolute_error"] == pytest.approx(0.5)
    assert compute["ways"]["default"]["p90"] == pytest.approx(0.28)
    assert compute["ways"]["default"]["worst"] == pytest.approx(0.3)
    assert compute["ways"]["default"]["in_interval"] == 1.0
    assert compute["measured_twice"] == pytest.approx(0.2)
    assert distributed["ways"]["default"]["mean_absolute_error"] == pytest.approx(0.2)
    assert distributed["measured_twice"] == 0.0
    assert more["ways"]["default"]["mean_absolute_error"] == pytest.approx(0.4)
    assert more["measured_twice"] is None
    assert fields["families"]["mlp"]["compute"]["ways"]["default"]["mean_absolute_error"] == pytest.approx(0.1)
    assert fields["operators"]["measured"]["error"] == pytest.approx(0.1)
    assert fields["operators"]["table"]["error"] is None
    assert fields["predict_seconds"] == {"mlp-wide": 3.0, "resnet18": 3.0}
    assert fields["measuring_seconds"] == 7.0
    assert fields["gpu"].startswith("not measured")
    # Sending takes three quarters of the time, so the same error is four times as large relative to the rest.
    by_rate = fields["rates"]["distributed"]["1000 Mbit/s"]
    assert (by_rate["cases"], by_rate["wire_share"]) == (2, 0.75)
    assert by_rate["error_of_the_rest"] == pytest.approx(4 * by_rate["mean_absolute_error"]) == pytest.approx(0.8)
    assert list(fields["rates"]) == ["distributed", "more ranks than cores"]
    assert fields["device"]["torch"] == "2.13.0"


def test_models_of_different_calibrations_are_not_added_up() -> None:
    *rest, last = results()
    with pytest.raises(LabError, match="different calibrations"):
        claim.add_up([*rest, (last[0], replace(last[1], calibrated="another"))])


def test_predictions_of_one_model_count_as_one() -> None:
    """More batch sizes of a model change neither the mean nor its interval."""
    cases = [
        ("mlp-wide", case(8, 1, None, default=1.1, roofline=1.5)),
        ("gru", case(8, 1, None, default=1.5, roofline=2.0)),
    ]
    again = [("mlp-wide", case(size, 1, None, default=1.1, roofline=1.5)) for size in range(100)]
    once, often = claim._errors(cases), claim._errors([*cases, *again])
    assert once["ways"]["default"]["mean_absolute_error"] == pytest.approx(0.3)
    for name in ("mean_absolute_error", "ci95"):
        assert often["ways"]["default"][name] == pytest.approx(once["ways"]["default"][name])
    assert often["gain_ci95"] == pytest.approx(once["gain_ci95"])
    assert (often["cases"], often["models"]) == (102, 2)
    # The interval is that of Student's t for two models, 0.1 and 0.5.
    assert once["ways"]["default"]["ci95"] == pytest.approx([0.3 - 12.706 * 0.2, 0.3 + 12.706 * 0.2], rel=1e-3)


def test_headline_is_what_the_command_does_by_default() -> None:
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    assert parser.parse_args(["m:f"]).measure is None
    fields = claim.add_up(results())
    assert (fields["way"], fields["intervals_over"]) == ("default", "models")
    assert fields["kinds"]["compute"]["ways"]["measured"]["mean_absolute_error"] == 0.0
    assert fields["kinds"]["compute"]["ways"]["table"]["mean_absolute_error"] == pytest.approx(0.25)
    assert claim.headline(fields)[0]["value"] == fields["kinds"]["compute"]["ways"]["default"]["mean_absolute_error"]


def test_headline_sets_it_beside_rooflines() -> None:
    entries = claim.headline(claim.add_up(results()))
    assert [entry["value"] for entry in entries] == [pytest.approx(0.2), pytest.approx(0.2), pytest.approx(0.4)]
    assert entries[0]["baseline"] == pytest.approx(0.5)
    low, high = entries[0]["ci95"]
    assert low <= entries[0]["reduction"] <= high


def test_tables_and_picture(tmp_path: Path) -> None:
    fields = claim.add_up(results())
    console = Console(record=True, width=200)
    for table in claim.tables(fields):
        console.print(table)
    text = console.export_text()
    assert "table, some measured, roofline (the default)" in text
    assert "table, else roofline (--measure 0)" in text
    assert "table, all else measured (--measure)" in text
    assert "over models" in text
    assert "residual cnn" in text
    assert "1000 Mbit/s" in text
    assert "GPU: not" in text
    claim.plot(fields, tmp_path)
    assert (tmp_path / "deepprophet.png").read_bytes().startswith(b"\x89PNG")


def test_result_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    group, result = results()[-1]
    (tmp_path / arms.RESULT).write_bytes(TypeAdapter(GroupResult).dump_json(result))
    assert group.read(tmp_path) == result
    (tmp_path / arms.RESULT).write_text("{}")
    with pytest.raises(ValueError):
        group.read(tmp_path)


def test_group_without_calibration_is_refused(tmp_path: Path) -> None:
    group = next(group for group in reversed(claim.groups(quick=True)) if isinstance(group, claim.Group))
    with pytest.raises(LabError, match="the calibration comes first"):
        group.run(Setting(tmp_path / group.name, "auto", None, threading.Event()))


def test_process_that_fails_is_named_and_a_stop_ends_it() -> None:
    stop = threading.Event()
    with pytest.raises(LabError, match="no such thing"):
        processes.run([["sh", "-c", "echo no such thing >&2; exit 3"]], stop)
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(LabError, match="stopped"):
        processes.run([["sleep", "60"]], stop)
    with pytest.raises(LabError, match="stopped"):
        processes.run([["true"]], stop)
