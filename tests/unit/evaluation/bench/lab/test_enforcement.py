"""What the bench of who enforces runs, and how its figures come from what the lab found."""

from __future__ import annotations

import math

import pytest

from controller.config.config import Config
from controller.enforcement import Enforcement
from evaluation.bench.lab.enforcement import ARMS, SEEDS, choices, summarised
from evaluation.demo_jobs import PERIOD_SECONDS, demo_wave
from topologies.lab.results import ArmResult, Control, JobResult, LabResult


def arm(name: str, seed: int, *seconds: float) -> ArmResult:
    jobs = {
        f"job{i}": JobResult(t90, t90, 2 * t90, censored=False, watched_seconds=2 * t90, history=())
        for i, t90 in enumerate(seconds)
    }
    return ArmResult("families", seed, name, jobs, Control(0, None, None, 1, 0, 0), (), 0.5, 60.0)


def result(seed: int, fair: float) -> LabResult:
    arms = [arm("fair", seed, fair, fair), *(arm(each.choice.name, seed, 0.5 * fair, 0.7 * fair) for each in ARMS)]
    return LabResult("uml", 13, 1e8, 8, None, {}, tuple(arms))


def test_each_arm_is_a_combination_that_the_settings_allow_and_none_is_there_twice() -> None:
    found = set()
    for each in ARMS:
        choice = each.choice
        config = Config.model_validate({"enforce": choice.enforce, "identity": choice.identity})
        found.add((config.enforcement, choice.served))
        assert (choice.served == "controller") is config.enforcement.switches
    assert len(found) == len({each.choice.name for each in ARMS}) == len(ARMS)
    assert {(Enforcement(identity=identity), "controller") for identity in ("flows", "classes", "dscp")} <= found
    assert {(Enforcement(hosts=False), "controller"), (Enforcement(switches=False), "plain")} <= found


@pytest.mark.parametrize("seed", SEEDS)
def test_all_arms_of_a_seed_have_jobs_that_declare_the_same(seed: int) -> None:
    jobs = demo_wave(period_seconds=PERIOD_SECONDS, seed=seed)
    fair, *others = choices(jobs)
    assert (fair.policy, fair.declares, fair.enforce) == ("fair", {}, ("switches", "hosts"))
    assert all(choice.declares == others[0].declares for choice in others)
    assert set(others[0].declares) == {job.id for job in jobs.experiment.jobs}


def test_the_figures_are_means_over_seeds_beside_fair_sharing() -> None:
    bench = summarised([result(1, 10.0), result(2, 20.0)])
    assert len(bench.figures) == 2 * len(ARMS)
    assert bench.datapath == "uml"
    first = bench.figures[0]
    assert (first.metric, first.unit, first.baseline_name) == ("mean_t90_classified", "s", "fair sharing")
    assert (first.value, first.baseline) == (pytest.approx(9.0), pytest.approx(15.0))
    assert first.ci95 == (pytest.approx(0.4), pytest.approx(0.4)), "both seeds have the same ratio"
    assert first.limit is None and first.holds
    assert bench.figures[-1].value == pytest.approx(18.0)
    assert [len(seeds) for seeds in bench.details["arms"].values()] == [2] * (len(ARMS) + 1)
    assert all(math.isnan(end) for end in summarised([result(1, 10.0)]).figures[0].ci95)
