"""The study of declared targets: the arms' jobs, what is measured, and the words of the command."""

from __future__ import annotations

import json

import pytest

from evaluation.jpas.claim import SEEDS
from evaluation.jpas.study import ALONE, ARMS, BASELINE, ERRORS, FIRST_SEED, Means, add_up, declarations, main, measure
from evaluation.simulated import workload
from simulator.reports.targets import target_value
from simulator.workloads import curves
from topologies.experiments.workload import HEAVY, Load, generate

FEW = Load("few", jobs=3, mean_gap_seconds=1.0)


def test_the_declared_targets_are_exact_or_wrong_by_the_same_draws() -> None:
    experiment = generate(HEAVY, FIRST_SEED)
    plain, exact, five, ten = (workload(experiment, declarations(experiment, error)).jobs for error in ERRORS.values())
    assert [job.target for job in plain] == [None] * HEAVY.jobs
    for job, some, more in zip(exact, five, ten, strict=True):
        truth = target_value(job.curve, 0.9)
        assert job.target == truth
        assert some.target is not None
        assert more.target is not None
        assert more.target / truth - 1 == pytest.approx(2 * (some.target / truth - 1))
        assert (job.lanes, job.curve, job.arrival) == (some.lanes, some.curve, some.arrival)


def test_what_judges_teaches_nothing() -> None:
    curve_of = {name: curves.load(name) for name in curves.names("study")}
    for seed in range(FIRST_SEED, FIRST_SEED + 20):
        for job in generate(HEAVY, seed).jobs:
            assert job.curve not in curve_of
    assert all(seed < FIRST_SEED for seeds in SEEDS.values() for seed in seeds)


def test_a_seed_is_measured_under_every_arm() -> None:
    means = measure(FEW, 1, {})
    assert set(means) == {ALONE, *ARMS}
    assert all(0 < mean.t90 <= mean.jct for mean in means.values())
    assert means[ALONE].t90 <= min(mean.t90 for mean in means.values())
    assert measure(FEW, 1, {}) == means


def test_figures_are_shares_of_what_fair_sharing_takes_longer() -> None:
    run = {arm: Means(30.0, 60.0) for arm in ARMS} | {ALONE: Means(10.0, 30.0), "exact": Means(20.0, 66.0)}
    found = add_up([run, run])
    assert found["exact"]["t90_reduction"] == pytest.approx(1 / 3)
    assert found["exact"]["headroom_won"] == found["exact"]["headroom_more_than_no_target"] == pytest.approx(0.5)
    assert found["exact"]["jct_reduction"] == pytest.approx(-0.1)
    assert found["exact"]["headroom_won_ci95"] == pytest.approx([0.5, 0.5])
    assert BASELINE not in found


def test_the_command_prints_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1", "--load", "light", "--processes", "1", "--option", "weight_end=0.2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["load"], document["seeds"], document["options"]) == ("light", [FIRST_SEED], {"weight_end": 0.2})
    assert list(document["arms"]) == list(ERRORS)
