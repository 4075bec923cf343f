"""The stream of retrainings: what a seed measures, and what its jobs declare."""

from __future__ import annotations

from collections import Counter

import pytest

from evaluation.curves.families.draw import data_sets
from evaluation.curves.families.runs import load
from evaluation.jpas.arms import PERIOD_SECONDS
from evaluation.jpas.stream import BEFORE, Wave, declarations, draw_wave
from simulator.reports.targets import declared_iteration, target_iteration
from topologies.experiments.workload import HEAVY, generate

CLAIM = {name: {run.accuracy for run in runs} for name, runs in load("claim").items()}


def of_seed(seed: int) -> Wave:
    return draw_wave(HEAVY, seed, period_seconds=PERIOD_SECONDS)


@pytest.mark.parametrize("seed", range(80, 84))
def test_a_seed_measures_one_wave_after_all_jobs_of_the_waves_before(seed: int) -> None:
    measured = of_seed(seed)
    assert measured.experiment == of_seed(seed).experiment
    assert len(measured.experiment.earlier) == HEAVY.jobs * BEFORE[seed % len(BEFORE)]
    every = [(measured.families[job.id], tuple(job.rows)) for job in measured.experiment.jobs]
    every += [(job.family, job.rows) for job in measured.experiment.earlier]
    assert all(rows in CLAIM[family] for family, rows in every)
    assert max(Counter(every).values()) == 1, "no run is drawn twice"


def test_what_judges_teaches_nothing() -> None:
    taught = {run.accuracy for runs in load("study").values() for run in runs}
    assert not taught & {rows for runs in CLAIM.values() for rows in runs}
    assert not set(data_sets("study")) & set(data_sets("claim"))


def test_few_families_have_many_runs() -> None:
    in_stream = Counter(job.family for job in of_seed(81).experiment.earlier)
    assert in_stream.most_common(1)[0][1] >= 5
    assert sum(count == 1 for count in in_stream.values()) >= 10


def test_the_jobs_are_those_of_the_old_workload_with_other_curves() -> None:
    for job, old in zip(of_seed(80).experiment.jobs, generate(HEAVY, 80).jobs, strict=True):
        assert (job.id, job.arrival, job.hosts, job.architecture) == (old.id, old.arrival, old.hosts, old.architecture)
        assert job.target is None
        assert job.family == ""


def test_targets_are_the_metric_at_90_percent_of_each_jobs_own_gap() -> None:
    measured = of_seed(83)
    for job in measured.experiment.jobs:
        curve = job.metrics
        assert declared_iteration(curve, measured.targets[job.id]) == target_iteration(curve, 0.9)


def test_arms_differ_in_what_jobs_declare() -> None:
    measured = of_seed(83)
    jobs = {job.id for job in measured.experiment.jobs}
    assert declarations(measured, "none") == declarations(measured, "everything") == {}
    half, both, wrong = (declarations(measured, knows) for knows in ("half", "both", "wrong-family"))
    assert len(half) == len(jobs) / 2
    assert all(declared.target == measured.targets[job] for job, declared in half.items())
    assert all(
        (declared.target, declared.family) == (measured.targets[job], measured.families[job])
        for job, declared in both.items()
    )
    assert set(declarations(measured, "target")) == set(declarations(measured, "family")) == set(both) == jobs
    others = [job for job, declared in wrong.items() if declared.family != measured.families[job]]
    assert len(others) == round((len(jobs) + len(measured.experiment.earlier)) / 4)
    assert set(wrong) == jobs | set(others)
    assert all(declared.target is None for declared in wrong.values())
