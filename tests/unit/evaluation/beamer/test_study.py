"""The study in the simulator: arms by their names, results that are kept, and the words of the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.policies.registry import PolicyError
from evaluation.beamer import study
from evaluation.beamer.arms import TESTBED, limits_of, measure, policy_of
from evaluation.beamer.kinds import FIRST_SEED, Bracket, Kind
from evaluation.beamer.simulation import Times, studies
from evaluation.beamer.study import Wanted, add_up, main, read, simulate_seed, write
from evaluation.beamer.workload import experiment

FEW = Kind("few", 2, (Bracket(9, (2, 6, 18)),), 1.0)


def test_an_arm_is_a_policy_with_options_and_limits() -> None:
    assert policy_of("beamer").name == "beamer"
    assert policy_of("fifo-lm:percentile=50").options()["percentile"] == 50
    assert limits_of("") == TESTBED
    assert (limits_of("period=1").period, limits_of("period=1").classes) == (1.0, 7)
    assert (limits_of("period=none,classes=all").period, limits_of("classes=all").classes) == (None, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("delay=1", "limit delay: there is no such limit; there are period, classes"),
        ("period=often", "limits period=often: could not convert string to float: 'often'; period is none or seconds"),
        ("classes=0", "limits classes=0: classes: 0; it must be at least 1; period is none"),
    ],
)
def test_a_wrong_limit_is_refused(text: str, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        limits_of(text)


def test_an_arm_has_one_result_and_bounds_and_searches_two() -> None:
    sim = studies(experiment(FEW, 1))
    assert set(measure("fair", sim, 5)) == {"fair"}
    assert set(measure("least", sim, 5)) == {"least", "least alone"}
    found = measure("search@classes=all,period=none", sim, 5)
    assert set(found) == {"search@classes=all,period=none", "search@classes=all,period=none start"}
    assert measure("least", sim, 5)["least"].sct <= found["search@classes=all,period=none"].sct


def test_results_are_kept_and_not_simulated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = simulate_seed(Wanted(FEW, ("beamer",), 5, tmp_path), 3)
    path = tmp_path / "few-3.json"
    assert read(path).keys() == first.keys() == {"fair", "beamer"}
    asked: list[str] = []
    monkeypatch.setattr(study, "measure", lambda arm, _sim, _evaluations: asked.append(arm) or {arm: Times(1.0)})
    again = simulate_seed(Wanted(FEW, ("beamer", "sincronia"), 5, tmp_path), 3)
    assert asked == ["sincronia"]
    assert set(again) == {"fair", "beamer", "sincronia"}
    assert read(path)["sincronia"] == Times(1.0)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "few-3.json"
    path.write_text("[1]")
    with pytest.raises(ValueError, match=r"few-3\.json: no results of arms"):
        read(path)


def test_figures_are_shares_of_the_baselines(tmp_path: Path) -> None:
    run = {"fair": Times(20.0, {2: 10.0, 6: 30.0}, 60.0), "beamer": Times(15.0, {2: 10.0, 6: 20.0}, 45.0)}
    write(tmp_path / "few-1.json", run)
    runs = [run, read(tmp_path / "few-1.json")]
    found = add_up(runs, ("fair", "beamer"))
    assert found["beamer"]["sct_against_fair"] == {
        "reduction": pytest.approx(0.25),
        "ci95": pytest.approx([0.25, 0.25]),
    }
    assert found["fair"]["sct_against_beamer"]["reduction"] == pytest.approx(-1 / 3)
    assert found["beamer"]["rungs"] == {2: 10.0, 6: 20.0}
    assert (found["beamer"]["best"], found["beamer"]["best_against_fair"]["reduction"]) == (45.0, 0.25)
    bound = add_up([{**one, "least": Times(5.0)} for one in runs])["least"]
    assert "best" not in bound
    assert bound["sct_against_fair"]["reduction"] == 0.75


def test_the_command_prints_a_document(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ["--kind", "studies", "--seeds", "1", "--processes", "1", "--keep", str(tmp_path), "--arm", "least"]
    assert main([*options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["seeds"], document["curves"]) == ("studies", [FIRST_SEED], "study")
    assert list(document["arms"]) == ["fair", "least", "least alone"]
    assert main(options) == 0
    assert "mean stage completion time" in capsys.readouterr().out


def test_an_unknown_arm_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--arm", "beamer:horizons=study"])
    assert "policy beamer has no option horizons" in capsys.readouterr().err
