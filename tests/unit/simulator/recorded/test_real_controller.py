"""Recordings of a real controller whose jobs are known: what is read of them, and the estimate against the truth."""

from __future__ import annotations

from statistics import mean

import pytest

from controller.policies.registry import make
from simulator.jobs import Compute, Transfer, Workload
from simulator.network import Hose
from simulator.outcome import Outcome
from simulator.recorded.fit import fitted
from simulator.recorded.source import Recorded, reading
from simulator.sweep.recorded_request import followed
from tests.golden.recorded_jobs import FILE, JOBS
from tests.support.simulator.real_recording import LIMITS, POLICY, job, record, run, workload
from tests.support.simulator.recordings import description

SHORT_JOBS = workload(
    job("long", 0.0, 40, "h1", ("h2",), 1.5e6, 0.05), job("short", 2.0, 20, "h1", ("h3",), 1.0e6, 0.05)
)
DECLARED = ("short",)
"""The jobs that declare how long they compute."""


def estimated(text: str) -> Workload:
    source = Recorded("f", text, 1.0)
    network = Hose(reading(source)[1].workload.hosts)
    return reading(fitted(source, make(POLICY, {}), LIMITS, network))[1].workload


def mean_jct(outcome: Outcome) -> float:
    return mean(ran.end - ran.arrival for ran in outcome.jobs.values())


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return record(SHORT_JOBS, tmp_path_factory.mktemp("recording"), DECLARED)


def test_all_jobs_of_a_recording_can_be_used(text: str) -> None:
    recording, found = reading(Recorded("f", text, 1.0))
    assert (set(found.estimated), found.left_out, found.unknown_rates) == ({"long", "short"}, {}, ())
    assert (recording.policy, recording.period, recording.classes, recording.missed) == (POLICY, 0.5, 7, 0)
    assert followed(Recorded("f", text, 1.0), None).why is None
    for each in SHORT_JOBS.jobs:
        one = found.estimated[each.id]
        assert (one.iterations, one.is_whole) == (each.iterations, True)
        assert one.bytes == sum(pair["bytes"] for pair in description(each)["demand"])
        assert [type(step) for step in one.job.lanes[0]] == [Compute, Transfer, Transfer]
        assert one.job.curve[-1] == pytest.approx(each.curve[-1])


@pytest.mark.parametrize("policy", ["fair", "fifo", "sebf"])
def test_the_estimate_is_near_the_truth(text: str, policy: str) -> None:
    true, found = run(SHORT_JOBS, policy), run(estimated(text), policy)
    for name, ran in true.jobs.items():
        seconds = found.jobs[name].end - found.jobs[name].arrival
        # A run of a few seconds, seen each second: nothing of it is known better.
        assert seconds == pytest.approx(ran.end - ran.arrival, rel=0.15, abs=1.5), name


def test_what_is_recorded_of_a_job_that_runs_is_a_part(text: str) -> None:
    lines = text.splitlines(keepends=True)
    first_end = next(number for number, line in enumerate(lines) if '"state":"ended"' in line)
    _, found = reading(Recorded("f", "".join(lines[:first_end]), 1.0))
    assert not any(each.is_whole for each in found.estimated.values())


@pytest.mark.parametrize("policy", ["sebf", "jpas", "las"])
def test_what_a_policy_saves_is_near_the_truth_where_no_job_had_the_network_alone(policy: str) -> None:
    jobs = estimated(FILE.read_text())
    assert mean_jct(run(jobs, POLICY)) == pytest.approx(mean_jct(run(JOBS, POLICY)), rel=0.06)
    saved = 1 - mean_jct(run(jobs, policy)) / mean_jct(run(jobs, POLICY))
    true = 1 - mean_jct(run(JOBS, policy)) / mean_jct(run(JOBS, POLICY))
    assert true > 0.05
    assert saved == pytest.approx(true, abs=0.03)
