"""What ``scripts/evaluate beamer`` measures and how it adds up, up to the box's process boundary."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evaluation import evaluate
from evaluation.beamer import claim
from evaluation.beamer.claim import BEAMER, FAIR, FIFO_LM, SINCRONIA, Group, add_up, groups, headline
from evaluation.beamer.workload import RUNGS, STUDIES, TRIALS, experiment
from simulator.workloads import curves
from tests.support.fake_kernel import FakeKernel
from topologies.experiments.workload import SHORTEST_ITERATION, communication_seconds
from topologies.frameworks import PYTHON_SETTING
from topologies.lab.results import ArmResult, Control, LabResult, load_request, save
from topologies.studies.process import StageResult, StudyResult


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


@pytest.mark.parametrize("seed", range(1, 9))
def test_studies_are_their_seed_alone_and_within_their_own_words(seed: int) -> None:
    made = experiment(seed)
    assert made == experiment(seed)
    assert made != experiment(seed + 1)
    assert len(made.studies) == STUDIES
    assert made.trained == STUDIES * (9 + 3 + 1)
    assert made.studies[0].arrival == 0.0
    assert len({plan.seed for plan in made.studies}) == STUDIES, "no two studies choose the same"
    claimed = set(curves.names("claim"))
    for plan in made.studies:
        assert len(set(plan.configurations)) == len(plan.configurations) > TRIALS
        assert set(plan.configurations) <= claimed
        jobs = [job for job in made.jobs if job.trial is not None and job.trial.study == plan.name]
        assert len(jobs) == TRIALS * len(RUNGS)
        assert len({(job.architecture, job.model, job.model_bytes) for job in jobs}) == 1
        for number in range(TRIALS):
            of_trial = [job for job in jobs if job.trial is not None and job.trial.number == number]
            assert len({(job.hosts, job.compute_seconds) for job in of_trial}) == 1, "a trial keeps its hosts"
            assert sum(job.iterations for job in of_trial) == RUNGS[-1]
        for job in jobs:
            each = job.compute_seconds + communication_seconds(
                job.architecture, len(job.hosts), job.model_bytes, made.link_bps
            )
            assert SHORTEST_ITERATION - 1e-3 <= each <= 1.5


def test_the_claim_has_paired_seeds_and_no_arm_always_goes_first() -> None:
    made = groups()
    for group in made:
        assert {"fair", "beamer", "sincronia"} <= {choice.name for choice in group.request().policies}
    assert len({group.seed for group in made}) == len(made) >= 5
    assert sum(FIFO_LM in group.policies for group in made) >= 3
    assert len({group.request().policies[0].name for group in made}) >= 3
    assert all(group.policies == (FAIR, BEAMER) for group in groups(others=False))
    (quick,) = groups(quick=True)
    assert quick.policies == (FAIR, BEAMER)
    assert quick.experiment().trained < made[0].experiment().trained


def results() -> list[tuple[Group, LabResult]]:
    three = (FAIR, BEAMER, SINCRONIA)
    stuck = study("a", 10.0, None, best=None), study("b", None, best=None)
    return [
        (
            Group(seed, (*three, FIFO_LM) if seed == 71 else three),
            lab(
                arm("sincronia", seed, study("a", 10.0, 20.0), study("b", 30.0, 20.0), idle=0.3),
                arm("fair", seed, study("a", 20.0, 20.0, best=60.0), study("b", 30.0, 30.0, best=100.0)),
                arm("beamer", seed, study("a", 10.0, 10.0, best=40.0), study("b", 20.0, 20.0, best=60.0 + extra)),
                *([arm("fifo-lm", seed, *stuck)] * (seed == 71)),
            ),
        )
        for seed, extra in ((71, 0.0), (72, 20.0))
    ]  # fmt: skip


def test_results_add_up_by_policy_beside_each_other_one_on_the_same_studies() -> None:
    fields = add_up(results())
    assert (fields["arms"], fields["least_cpu_idle_share"], fields["tuner"]) == (7, 0.3, ["optuna 1"])
    assert list(fields["policies"]) == ["fair", "beamer", "sincronia", "fifo-lm"]
    beamer = fields["policies"]["beamer"]
    assert (beamer["seeds"], beamer["stages"], beamer["censored"]) == ([71, 72], 8, 0)
    assert beamer["sct"]["by_seed"] == [15.0, 15.0]
    assert beamer["sct_by_rung"] == [15.0, 15.0]
    assert beamer["best"]["by_seed"] == [50.0, 60.0]
    against = beamer["sct"]["against"]
    assert against["fair"]["reduction"] == pytest.approx(0.4)
    assert against["fair"]["reduction_ci95"] == [pytest.approx(0.4), pytest.approx(0.4)]
    assert against["sincronia"]["reduction"] == pytest.approx(0.25)
    best = beamer["best"]["against"]["fair"]
    assert (best["seeds"], best["baseline_mean"], best["mean"]) == (2, 80.0, 55.0)
    assert best["reduction_ci95"][0] < 0.25 < 0.375 < best["reduction_ci95"][1]
    assert fields["policies"]["fair"]["sct"]["against"].keys() == {"sincronia", "fifo-lm"}


def test_what_did_not_end_counts_as_it_was_watched_and_is_told() -> None:
    fifo_lm = add_up(results())["policies"]["fifo-lm"]
    assert (fifo_lm["censored"], fifo_lm["stages"]) == (3, 4), "a stage that never began is one of them"
    assert fifo_lm["sct"]["mean"] == pytest.approx((10.0 + 99.0 + 99.0) / 3)
    assert fifo_lm["best"]["mean"] == 300.0


def test_the_headline_is_of_beamer_beside_each_of_the_others() -> None:
    fields = add_up(results())
    claims = headline(fields)
    assert [claim["metric"] for claim in claims] == ["mean_sct"] * 3 + ["mean_time_to_best"] * 3
    assert [claim["claim"].rpartition("against ")[2] for claim in claims[:3]] == [
        "per-flow fair sharing", "Sincronia", "FIFO-LM",
    ]  # fmt: skip
    assert claims[0]["reduction"] == pytest.approx(0.4)
    (table,) = claim.tables(fields)
    assert table.row_count == 4


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
    assert list(made["policies"]) == ["fair", "beamer"]
    assert made["policies"]["beamer"]["sct"]["against"]["fair"]["reduction"] == pytest.approx(0.5)
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
