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
from simulator.recorded.fit import ROUNDS, fitted
from simulator.recorded.observed import observed
from simulator.recorded.source import Recorded, reading
from simulator.workloads.catalogue import named
from simulator.workloads.training import Training, generate
from tests.support.simulator.recordings import as_text, documents, recorded

LIMITS = Limits(classes=7, period=1.0)


def mix(load: str, seed: int) -> Workload:
    training = named(load)
    assert isinstance(training, Training)
    return generate(replace(training, hosts=12, jobs=8, workers=(2, 4), seed=seed))


def run(workload: Workload, policy: str) -> Outcome:
    return simulate(workload, make(policy, {}), LIMITS)


def mean_jct(outcome: Outcome) -> float:
    return mean(job.end - job.arrival for job in outcome.jobs.values())


def known(workload: Workload, outcome: Outcome) -> Workload:
    """Returns the jobs as a recording of them shows."""
    source = Recorded("f", recorded(workload, outcome), 1e9)
    network = Hose(reading(source)[1].workload.hosts)
    return reading(fitted(source, make(outcome.policy, {}), LIMITS, network))[1].workload


@pytest.mark.parametrize("load", ["training-light", "training-heavy"])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("policy", "other"), [("fair", "sebf"), ("las", "fair")])
def test_it_is_near_the_truth_under_the_recorded_policy_and_under_another(
    load: str, seed: int, policy: str, other: str
) -> None:
    workload = mix(load, seed)
    ran = run(workload, policy)
    jobs = known(workload, ran)
    again = run(jobs, policy)
    assert mean_jct(again) == pytest.approx(mean_jct(ran), rel=0.07)
    saved = 1 - mean_jct(run(jobs, other)) / mean_jct(again)
    assert saved == pytest.approx(1 - mean_jct(run(workload, other)) / mean_jct(ran), abs=0.08)


def compute_of(workload: Workload) -> dict[str, float]:
    return {job.id: sum(s.seconds for s in job.lanes[0] if isinstance(s, Compute)) for job in workload.jobs}


def test_the_fit_takes_out_what_others_slowed() -> None:
    workload = mix("training-heavy", 3)
    ran = run(workload, "fair")
    true = compute_of(workload)
    before = compute_of(reading(Recorded("f", recorded(workload, ran), 1e9))[1].workload)
    after = compute_of(known(workload, ran))
    assert max(before[name] / true[name] for name in true) > 1.4, "one of them never had the network alone"
    errors = [mean(abs(found[name] / true[name] - 1) for name in true) for found in (before, after)]
    assert errors[1] < min(0.25, errors[0])
    assert all(after[name] <= before[name] for name in true)


def test_the_fit_tells_how_far_it_is() -> None:
    workload = mix("training-light", 1)
    source = Recorded("f", recorded(workload, run(workload, "fair")), 1e9)
    shares: list[float] = []
    fitted(source, make("fair", {}), LIMITS, Hose(reading(source)[1].workload.hosts), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1 and 0 < shares[0] < 1 / ROUNDS


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
