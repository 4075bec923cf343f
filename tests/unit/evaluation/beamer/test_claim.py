"""What ``scripts/evaluate beamer`` measures and how it adds up, up to the box's process boundary."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation import evaluate
from evaluation.beamer import claim
from evaluation.beamer.claim import headline
from evaluation.beamer.figures import add_up, best_seconds
from evaluation.beamer.groups import BEAMER, FAIR, FIFO_LM, POLICIES, SINCRONIA, Group, groups
from evaluation.beamer.kinds import NINE, Bracket, Kind
from tests.support.fake_kernel import FakeKernel
from topologies.frameworks import PYTHON_SETTING
from topologies.lab.results import ArmResult, Control, JobResult, LabResult, load_request, save
from topologies.studies.process import StageResult, StudyResult

TWO = Kind("two", 2, (Bracket(3, (6, 18)),))


def study(name: str, *seconds: float | None, best: float | None = 50.0, rungs: int = 2) -> StudyResult:
    stages = tuple(
        StageResult(f"b0.r{rung}", (), 0.0, one, 99.0 if one is None else one) for rung, one in enumerate(seconds)
    )
    return StudyResult(name, rungs, stages, best, 1, 0.9, 300.0 if best is None else best, "optuna 1")


def arm(policy: str, seed: int, *found: StudyResult, idle: float = 0.5) -> ArmResult:
    control = Control(3, 0.05, 0.09, plans=10, flow_mods=20, gate_renewals=5)
    return ArmResult("x", seed, policy, {}, control, (1,) * 8, idle, 60.0, (), found)


def lab(*arms: ArmResult) -> LabResult:
    return LabResult("user", 13, 1e7, 8, None, {}, arms)


def test_the_claim_has_paired_seeds_and_no_arm_always_goes_first() -> None:
    made = groups()
    for group in made:
        assert sorted(choice.name for choice in group.request().policies) == sorted(one.name for one in POLICIES)
    for kind in {group.kind for group in made}:
        of_kind = [group for group in made if group.kind == kind]
        assert len({group.seed for group in of_kind}) == len(of_kind) >= 5
        assert len({group.request().policies[0].name for group in of_kind}) == len(POLICIES)
    assert len({group.name for group in made}) == len(made)
    assert all(group.policies == (FAIR, BEAMER) for group in groups(others=False))
    (quick,) = groups(quick=True)
    assert quick.policies == (FAIR, BEAMER)
    assert quick.experiment().trained < made[-1].experiment().trained


def results() -> list[tuple[Group, LabResult]]:
    three = (FAIR, BEAMER, SINCRONIA)
    stuck = study("study1", 10.0, None, best=None), study("study2", None, best=None)
    return [
        (
            Group(TWO, seed, (*three, FIFO_LM) if seed == 71 else three),
            lab(
                arm("sincronia", seed, study("study1", 10.0, 20.0), study("study2", 30.0, 20.0), idle=0.3),
                arm("fair", seed, study("study1", 20.0, 20.0, best=60.0), study("study2", 30.0, 30.0, best=100.0)),
                arm("beamer", seed, study("study1", 10.0, 10.0, best=40.0), study("study2", 20.0, 20.0, best=extra)),
                *([arm("fifo-lm", seed, *stuck)] * (seed == 71)),
            ),
        )
        for seed, extra in ((71, 60.0), (72, 80.0))
    ]  # fmt: skip


def test_results_add_up_by_policy_beside_each_other_one_on_the_same_studies() -> None:
    fields = add_up(results())
    assert (fields["arms"], fields["least_cpu_idle_share"], fields["tuner"]) == (7, 0.3, ["optuna 1"])
    assert list(fields["kinds"]) == ["two"]
    policies = fields["kinds"]["two"]["policies"]
    assert list(policies) == ["fair", "beamer", "sincronia", "fifo-lm"]
    beamer = policies["beamer"]
    assert (beamer["seeds"], beamer["stages"], beamer["censored"]) == ([71, 72], 8, 0)
    assert beamer["sct"]["by_seed"] == [15.0, 15.0]
    assert beamer["sct_by_rung"] == {"6": 15.0, "18": 15.0}
    assert beamer["best"]["by_seed"] == [50.0, 60.0]
    against = beamer["sct"]["against"]
    assert against["fair"]["reduction"] == pytest.approx(0.4)
    assert against["fair"]["reduction_ci95"] == [pytest.approx(0.4), pytest.approx(0.4)]
    assert against["sincronia"]["reduction"] == pytest.approx(0.25)
    best = beamer["best"]["against"]["fair"]
    assert (best["seeds"], best["baseline_mean"], best["mean"]) == (2, 80.0, 55.0)
    assert best["reduction_ci95"][0] < 0.25 < 0.375 < best["reduction_ci95"][1]
    assert policies["fair"]["sct"]["against"].keys() == {"sincronia", "fifo-lm"}


def test_the_small_form_adds_up_alike_and_has_no_jobs() -> None:
    jobs = {"study1.t0.r0": JobResult(None, None, 9.0, False, 9.0, ((1.0, 1, 0.5),))}
    whole = [
        (group, replace(result, arms=tuple(replace(arm, jobs=jobs) for arm in result.arms)))
        for group, result in results()
    ]
    small = [(group, group.small(result)) for group, result in whole]
    # As text, because one seed has no interval, and what is no number equals nothing.
    assert str(add_up(small)) == str(add_up(whole))
    assert not any(arm.jobs for _, result in small for arm in result.arms)


def test_what_did_not_end_counts_as_it_was_watched_and_is_told() -> None:
    fifo_lm = add_up(results())["kinds"]["two"]["policies"]["fifo-lm"]
    assert (fifo_lm["censored"], fifo_lm["stages"]) == (3, 4), "a stage that never began is one of them"
    assert fifo_lm["sct"]["mean"] == pytest.approx((10.0 + 99.0 + 99.0) / 3)
    assert fifo_lm["best"]["mean"] == 300.0


def test_kinds_are_added_up_by_themselves_and_rungs_have_the_iterations_of_their_ends() -> None:
    wide = Kind("wide", 1, (Bracket(9, (2, 6, 18)), Bracket(3, (6, 18))))
    brackets = study("study1-0", 8.0, 9.0, 10.0, best=30.0, rungs=3), study("study1-1", 11.0, 12.0, best=70.0)
    both = [*results(), (Group(wide, 5, (FAIR, BEAMER)), lab(arm("fair", 5, *brackets), arm("beamer", 5, *brackets)))]
    kinds = add_up(both)["kinds"]
    assert repr(kinds["two"]) == repr(add_up(results())["kinds"]["two"]), "an interval of one seed is no number"
    fair = kinds["wide"]["policies"]["fair"]
    assert (kinds["wide"]["studies"], fair["stages"]) == ([1], 5)
    assert fair["sct_by_rung"] == {"2": 8.0, "6": 10.0, "18": 11.0}


def test_the_best_of_a_study_is_known_when_its_brackets_are_over() -> None:
    better = replace(study("study1-1", 9.0, best=70.0), best_metric=0.95)
    assert best_seconds(arm("fair", 5, study("study1-0", 9.0, best=30.0), better)) == 70.0
    assert best_seconds(arm("fair", 5, study("study1-0", 9.0, best=30.0), replace(better, best_metric=0.5))) == 30.0
    assert best_seconds(arm("fair", 5, study("study1-0", 9.0, best=None), better)) == 300.0


def test_the_headline_is_of_beamer_beside_each_of_the_others() -> None:
    fields = add_up(results())
    claims = headline(fields)
    assert [claim["metric"] for claim in claims] == ["mean_sct"] * 3 + ["mean_time_to_best"] * 3
    assert [claim["claim"].rpartition("against ")[2] for claim in claims[:3]] == [
        "per-flow fair sharing, two", "Sincronia, two", "FIFO-LM, two",
    ]  # fmt: skip
    assert {claim["kind"] for claim in claims} == {"two"}
    assert claims[0]["reduction"] == pytest.approx(0.4)
    (table,) = claim.tables(fields)
    assert table.row_count == 4
    assert "simulated" not in fields["kinds"]["two"]


def test_bounds_stand_beside_the_gains() -> None:
    group, result = results()[0]
    fields = claim.add_up([(Group(NINE, 71, group.policies), result)])
    beamer, least = (fields["kinds"]["studies"]["simulated"][arm]["reduction"] for arm in ("beamer", "least"))
    (table,) = claim.tables(fields)
    names, saved = list(table.columns[0].cells), list(table.columns[6].cells)
    assert saved[names.index("beamer")] == f"{beamer:.1%}"
    assert saved[names.index("no order beats")] == f"{least:.1%}"
    assert claim.add_up(results())["kinds"]["two"]["simulated"] == {}, "nobody has simulated it"


def test_the_command_measures_quickly_and_writes_all(
    kernel: FakeKernel, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON_SETTING, sys.executable)
    folder = tmp_path / "out"
    arguments = ["beamer", "--quick", "--datapath", "uml", "--results", str(folder)]
    assert evaluate.main(arguments) == 0
    assert kernel.runs() == ["studies-1"]
    made = json.loads((folder / "summary.json").read_text())
    assert (made["quick"], made["arms"], made["seeds"]) == (True, 2, [1])
    policies = made["kinds"]["studies"]["policies"]
    assert list(policies) == ["fair", "beamer"]
    assert policies["beamer"]["sct"]["against"]["fair"]["reduction"] == pytest.approx(0.5)
    assert all("quick" in claim["claim"] for claim in made["headline"])
    assert (folder / "beamer.png").read_bytes().startswith(b"\x89PNG")
    assert "not to be quoted" in capsys.readouterr().out
    kernel.forget()
    assert evaluate.main([*arguments, "--resume"]) == 0
    assert kernel.runs() == [], "its result answers the same request"


def test_a_request_goes_to_the_box_and_comes_back_whole(tmp_path: Path) -> None:
    request = groups()[0].request()
    save(tmp_path / "request.json", request)
    assert load_request(tmp_path / "request.json") == request
