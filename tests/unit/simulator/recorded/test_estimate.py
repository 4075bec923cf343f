"""The estimate against the truth: recordings of simulated clusters, whose jobs are known, under other policies."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import pytest

from controller.policies.registry import make
from simulator.engine import simulate
from simulator.jobs import Compute, Workload
from simulator.limits import Limits
from simulator.network import Hose
from simulator.outcome import Outcome
from simulator.recorded.observed import observed
from simulator.recorded.source import Recorded, reading
from simulator.workloads.catalogue import named
from simulator.workloads.training import Training, generate
from tests.support.simulator.recordings import as_text, documents, recorded

LIMITS = Limits(classes=7, period=1.0)
TRUE, ESTIMATED = "true", "estimated"


def mix(load: str, seed: int) -> Workload:
    training = named(load)
    assert isinstance(training, Training)
    return generate(replace(training, hosts=12, jobs=8, workers=(2, 4), seed=seed))


def run(workload: Workload, policy: str) -> Outcome:
    return simulate(workload, make(policy, {}), LIMITS)


def mean_jct(outcome: Outcome) -> float:
    return mean(job.end - job.arrival for job in outcome.jobs.values())


@pytest.mark.parametrize("load", ["training-light", "training-heavy"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_near_the_truth_under_the_recorded_policy_and_under_another(load: str, seed: int) -> None:
    workload = mix(load, seed)
    fair, sebf = run(workload, "fair"), run(workload, "sebf")
    _, found = reading(Recorded("f", recorded(workload, fair), 1e9))
    assert not found.left_out and not found.unknown_rates
    again, other = run(found.workload, "fair"), run(found.workload, "sebf")
    assert mean_jct(again) == pytest.approx(mean_jct(fair), rel=0.1)
    saved, true = 1 - mean_jct(other) / mean_jct(again), 1 - mean_jct(sebf) / mean_jct(fair)
    assert saved == pytest.approx(true, abs=0.05)


def test_what_was_observed_is_what_ran() -> None:
    workload = mix("training-heavy", 1)
    fair = run(workload, "fair")
    _, found = reading(Recorded("f", recorded(workload, fair), 1e9))
    seen = observed(found, Hose(found.workload.hosts), "fair")
    for name, job in fair.jobs.items():
        assert seen.jobs[name].end - seen.jobs[name].arrival == pytest.approx(job.end - job.arrival, abs=2.5), name
        assert seen.jobs[name].bytes == pytest.approx(job.bytes)
    assert seen.port_bytes == pytest.approx({port: size for port, size in fair.port_bytes.items() if size > 0})


def test_a_recording_from_the_middle_has_the_parts_of_jobs_that_it_saw() -> None:
    workload = mix("training-heavy", 1)
    fair = run(workload, "fair")
    events = documents(recorded(workload, fair))
    begin = fair.jobs[workload.jobs[0].id].end / 2
    later = [event for event in events if event["time"] >= begin or event["event"] != "job"]
    _, found = reading(Recorded("f", as_text(later), 1e9))
    parts = [name for name, each in found.estimated.items() if not each.is_whole]
    assert workload.jobs[0].id in parts
    first = found.estimated[workload.jobs[0].id]
    assert 0 < first.iterations < workload.jobs[0].iterations
    compute = next(step for step in workload.jobs[0].lanes[0] if isinstance(step, Compute))
    assert first.compute_seconds >= 0.8 * compute.seconds
