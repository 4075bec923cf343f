"""The studies that the claim runs: as tuners search, and by their seed alone."""

from __future__ import annotations

import pytest

from evaluation.beamer.groups import SEEDS
from evaluation.beamer.kinds import (
    CLAIM_SEEDS,
    ETA,
    FIRST_SEED,
    HALVING_27,
    HALVING_81,
    HYPERBAND_27,
    HYPERBAND_81,
    KINDS,
    NINE,
    Kind,
)
from evaluation.beamer.workload import experiment
from simulator.workloads import curves
from topologies.experiments.workload import SHORTEST_ITERATION, communication_seconds


def test_brackets_are_hyperbands() -> None:
    assert HALVING_27.brackets == ((27, (2, 6, 18, 54)),)
    assert HALVING_81.brackets == ((81, (2, 6, 18, 54, 162)),)
    assert HYPERBAND_27.brackets == ((27, (2, 6, 18, 54)), (12, (6, 18, 54)), (6, (18, 54)), (4, (54,)))
    assert [trials for trials, _ in HYPERBAND_81.brackets] == [81, 34, 15, 8, 5], "the table of the paper"


def test_the_policy_is_designed_on_other_seeds_than_the_claims() -> None:
    assert all(seed < FIRST_SEED for seeds in (CLAIM_SEEDS, *SEEDS.values()) for seed in seeds)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize("seed", [1, 2])
def test_studies_are_their_seed_alone_and_within_their_own_words(kind: Kind, seed: int) -> None:
    made = experiment(kind, seed)
    assert made == experiment(kind, seed)
    assert made.jobs != experiment(kind, seed + 2).jobs
    assert made.name == f"{kind.name}-{seed}"
    assert len(made.studies) == kind.studies * len(kind.brackets)
    assert made.studies[0].arrival == 0.0
    assert len({plan.seed for plan in made.studies}) == len(made.studies), "no two brackets choose the same"
    claimed = set(curves.names("claim"))
    for plan in made.studies:
        assert (plan.trials, plan.rungs) in kind.brackets
        assert len(set(plan.configurations)) == len(plan.configurations) > min(plan.trials, 27)
        assert set(plan.configurations) <= claimed
        jobs = [job for job in made.jobs if job.trial is not None and job.trial.study == plan.name]
        assert len(jobs) == plan.trials * len(plan.rungs)
        assert len({(job.architecture, job.model, job.model_bytes) for job in jobs}) == 1
        for number in range(plan.trials):
            of_trial = [job for job in jobs if job.trial is not None and job.trial.number == number]
            assert len({(job.hosts, job.compute_seconds) for job in of_trial}) == 1, "a trial keeps its hosts"
            assert sum(job.iterations for job in of_trial) == plan.rungs[-1]
        for job in jobs:
            each = job.compute_seconds + communication_seconds(
                job.architecture, len(job.hosts), job.model_bytes, made.link_bps
            )
            assert SHORTEST_ITERATION - 1e-3 <= each <= 1.5


def test_the_brackets_of_a_study_begin_together_and_train_the_same_model() -> None:
    made = experiment(HYPERBAND_27, 1)
    assert [plan.name for plan in made.studies[:5]] == ["study1-0", "study1-1", "study1-2", "study1-3", "study2-0"]
    assert len({plan.arrival for plan in made.studies[:4]}) == 1
    assert made.studies[4].arrival > 0
    first = [job for job in made.jobs if job.id.startswith("study1-")]
    assert len({(job.model, job.architecture, job.model_bytes) for job in first}) == 1


def test_the_half_of_the_recorded_runs_is_the_callers_choice() -> None:
    assert set(experiment(NINE, 1, use="study").studies[0].configurations) <= set(curves.names("study"))
    assert experiment(NINE, 1).studies[0].eta == ETA
