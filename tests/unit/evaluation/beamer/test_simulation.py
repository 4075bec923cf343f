"""Studies of the testbed in the simulator: the same trials, promoted by what they show."""

from __future__ import annotations

import pytest

from controller.policies.fair import Fair
from evaluation.beamer.kinds import HYPERBAND_27, NINE, Bracket, Kind
from evaluation.beamer.simulation import SimStudies, run, studies, times
from evaluation.beamer.workload import experiment
from simulator.engine import simulate
from simulator.limits import Limits

FEW = Kind("few", 2, (Bracket(9, (2, 6, 18)), Bracket(3, (6, 18))), 1.0)


@pytest.fixture(scope="module")
def sim() -> SimStudies:
    return studies(experiment(FEW, 1))


def test_jobs_are_those_of_the_experiment_and_the_best_go_on(sim: SimStudies) -> None:
    planned = {job.id: job for job in experiment(FEW, 1).jobs}
    assert list(sim.brackets) == ["study1-0", "study1-1", "study2-0", "study2-1"]
    for name, rungs in sim.brackets.items():
        assert [len(rung.jobs) for rung in rungs] == ([9, 3, 1] if name.endswith("0") else [3, 1])
        before: tuple[str, ...] = ()
        shown: dict[str, float] = {}
        for number, rung in enumerate(rungs):
            assert rung.stage == f"{name}.b0.r{number}"
            going = {job.id.rpartition(".")[0] for job in rung.jobs}
            assert not before or min(shown[trial] for trial in going) >= max(
                (metric for trial, metric in shown.items() if trial not in going), default=0.0
            )
            assert {job.rungs_left for job in rung.jobs} == {len(rungs) - 1 - number}
            for job in rung.jobs:
                assert (job.iterations, len(job.curve)) == (planned[job.id].iterations,) * 2
                assert job.after == before
                assert [task.host for task in job.tasks] == list(planned[job.id].hosts)
            before = tuple(job.id for job in rung.jobs)
            shown = {job.id.rpartition(".")[0]: job.curve[-1] for job in rung.jobs}


def test_a_trials_curve_goes_on_where_it_was(sim: SimStudies) -> None:
    first, second, _ = sim.brackets["study1-0"]
    promoted = second.jobs[0]
    begun = next(job for job in first.jobs if job.id == promoted.id.replace(".r1", ".r0"))
    assert len(begun.curve) + len(promoted.curve) == second.until == 6


def test_the_rungs_of_a_bracket_add_up_to_its_time(sim: SimStudies) -> None:
    outcome = simulate(sim.workload, Fair(), Limits())
    found = times(sim, outcome)
    assert found == run(sim, Fair(), Limits())
    whole = 0.0
    for rungs in sim.brackets.values():
        ends = [outcome.jobs[job.id].end for job in rungs[-1].jobs]
        whole += max(ends) - rungs[0].jobs[0].arrival
    stages = sum(map(len, sim.brackets.values()))
    assert found.sct * stages == pytest.approx(whole)
    assert list(found.rungs) == [2, 6, 18]
    assert found.best is not None
    assert 0 < found.best <= max(job.end for job in outcome.jobs.values())


def test_the_best_trial_of_a_study_is_the_best_of_its_brackets() -> None:
    made = studies(experiment(HYPERBAND_27, 3))
    last = {job.id: job.curve[-1] for rungs in made.brackets.values() for job in rungs[-1].jobs}
    for study, job in made.best.items():
        assert last[job] == max(metric for name, metric in last.items() if name.startswith(f"{study}-"))


def test_a_study_of_one_bracket_has_its_name() -> None:
    assert set(studies(experiment(NINE, 1)).best) == {"study1", "study2", "study3", "study4"}
