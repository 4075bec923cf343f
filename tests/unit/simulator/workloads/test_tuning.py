"""Tuning in stages: who is promoted, when, and into which stage."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

import pytest

from simulator.errors import InputError
from simulator.jobs import SimJob
from simulator.workloads import halving, tuning
from simulator.workloads.asha import AshaFollower, Tuner
from simulator.workloads.study import Config, Study, best
from simulator.workloads.tuning import Tuning, generate

RUNGS = (2, 4, 8)


def study(final: list[float], eta: int = 2, rungs: tuple[int, ...] = RUNGS) -> Study:
    """Configurations whose metric is always the given one."""
    configs = tuple(Config(n, (), (value,) * rungs[-1], "ring", ("a", "b")) for n, value in enumerate(final, start=1))
    return Study("s", "m", configs, rungs, eta, 1000)


def number(job: SimJob) -> int:
    return int(job.id.rsplit("/c", 1)[1])


def test_rungs_grow_eta_fold_up_to_the_longest() -> None:
    assert halving.geometric(6, 162, 3) == (6, 18, 54, 162)
    assert halving.geometric(5, 100, 4) == (6, 25, 100)
    assert halving.geometric(100, 100, 3) == (100,)


def test_halving_keeps_the_best_of_each_rung_and_waits_for_all_of_it() -> None:
    jobs = halving.halving_jobs(study([0.1, 0.4, 0.3, 0.2]), 5.0)
    by_stage: dict[str | None, list[SimJob]] = {}
    for job in jobs:
        by_stage.setdefault(job.stage, []).append(job)
    assert {stage: [number(job) for job in found] for stage, found in by_stage.items()} == {
        "s/rung1": [1, 2, 3, 4], "s/rung2": [2, 3], "s/rung3": [2],
    }  # fmt: skip
    assert [job.iterations for job in jobs] == [2, 2, 2, 2, 2, 2, 4]
    assert all(len(job.curve) == job.iterations for job in jobs)
    assert by_stage["s/rung2"][0].after == tuple(job.id for job in by_stage["s/rung1"])
    assert {job.arrival for job in jobs} == {5.0}
    assert [job.rungs_left for job in jobs] == [2, 2, 2, 2, 1, 1, 0]


def test_a_bracket_whose_trials_do_not_last_tells_no_rung_that_has_none() -> None:
    jobs = halving.halving_jobs(study([0.1, 0.2]), 0.0)
    assert [(job.stage, job.rungs_left) for job in jobs] == [("s/rung1", 1), ("s/rung1", 1), ("s/rung2", 0)]


def test_of_equals_the_first_is_kept() -> None:
    assert [config.number for config in best(study([0.5, 0.5, 0.5]).configs, 1, 2)] == [1, 2]


def test_hyperbands_brackets_are_the_papers() -> None:
    # Li et al., JMLR 2018, table 1: R = 81, eta = 3.
    assert halving.brackets(5, 3) == [(81, 0), (34, 1), (15, 2), (8, 3), (5, 4)]
    rungs = halving.geometric(1, 81, 3)
    jobs = halving.hyperband_jobs(study([0.0] * halving.hyperband_configs(5, 3), 3, rungs), 0.0)
    sizes = Counter(job.stage for job in jobs)
    assert [sizes[f"s/bracket1/rung{i}"] for i in (1, 2, 3, 4, 5)] == [81, 27, 9, 3, 1]
    assert [sizes[f"s/bracket2/rung{i}"] for i in (2, 3, 4, 5)] == [34, 11, 3, 1]
    assert [sizes[f"s/bracket5/rung{i}"] for i in (5,)] == [5]
    ends = {job.id for job in jobs if job.stage == "s/bracket1/rung5"}
    assert {job.after for job in jobs if job.stage == "s/bracket2/rung2"} == {tuple(ends)}


def test_asha_promotes_from_the_highest_rung_down_without_a_barrier() -> None:
    tuner = Tuner(study([0.4, 0.3, 0.2, 0.1]), slots=2, batch=1)
    first = tuner.start(0.0)
    assert [number(job) for job in first] == [1, 2]
    (new,) = tuner.ended(first[1].id, 1.0)
    assert (number(new), new.iterations, new.arrival) == (3, 2, 1.0), "nobody is in the best half of one trial"
    (promoted,) = tuner.ended(first[0].id, 2.0)
    assert (number(promoted), promoted.iterations, len(promoted.curve)) == (1, 2, 2), "the best of two goes on"
    assert promoted.stage != new.stage


def test_asha_submits_in_batches_and_ends() -> None:
    follower = AshaFollower([(Tuner(study([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]), slots=4, batch=2), 0.0)])
    running, sizes = deque(follower.first), [len(follower.first)]
    most, now = len(running), 0.0
    while running:
        now += 1.0
        new = follower(running.popleft().id, now)
        sizes.append(len(new))
        running.extend(new)
        most = max(most, len(running))
    assert sizes[:4] == [4, 0, 2, 0]
    assert most == 4
    trials = [*follower.first, *follower.submitted]
    assert len({job.id for job in trials}) == len(trials)
    assert Counter(job.iterations for job in trials)[2] >= 8, "every configuration was tried"
    assert {number(job) for job in trials if job.iterations == 4} <= {1, 2, 3}


@pytest.mark.parametrize("method", ["halving", "hyperband", "asha"])
def test_a_workload_names_its_stages_and_repeats_from_its_seed(method: tuning.Method) -> None:
    scenario = generate(Tuning(method, jobs=2))
    jobs = scenario.workload.jobs
    assert scenario.workload == generate(Tuning(method, jobs=2)).workload
    assert scenario.workload.stages == tuning.stages(jobs)
    assert sum(map(len, scenario.workload.stages.values())) == len(jobs)
    assert (scenario.follower is not None) == (method == "asha")
    assert jobs[0].arrival == 0.0
    assert jobs[-1].arrival > 0.0
    assert {job.arrival for job in generate(Tuning(method, jobs=2), offline=True).workload.jobs} == {0.0}


def test_a_follower_is_fresh_for_each_simulation() -> None:
    make = generate(Tuning("asha", jobs=1)).follower
    assert make is not None
    one, other = make(), make()
    for job in one.submitted:
        raise AssertionError(job)
    ids = [job.id for job in generate(Tuning("asha", jobs=1)).workload.jobs]
    told = [[job.id for job in follower(name, 1.0)] for follower in (one, other) for name in ids]
    assert told[: len(ids)] == told[len(ids) :]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"load": 2.0}, "load"),
        ({"jobs": 0}, "jobs"),
        ({"workers": (1, 1)}, "workers"),
        ({"hosts": 4}, "hosts"),
        ({"eta": 1}, "eta"),
        ({"shortest": 200}, "iterations"),
        ({"batch": 13}, "batch"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InputError, match=f"^{field}: "):
        tuning.check(replace(Tuning(), **changes))  # type: ignore[arg-type]
