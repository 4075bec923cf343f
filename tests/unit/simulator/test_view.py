"""What a policy is shown of coflows and training jobs while they run."""

from __future__ import annotations

import numpy as np
import pytest

from controller.model import Demand
from simulator.jobs import Compute, SimJob
from tests.support.simulator.small_cases import SECOND, Spy, coflow, run, transfer


def test_a_coflow_shows_what_it_has_left_by_port_and_what_it_has_sent() -> None:
    spy = Spy()
    jobs = [coflow("1", ("a", "b", 2), ("a", "c", 1), ("d", "c", 1)), coflow("2", ("e", "f", 1), arrival=1)]
    run(*jobs, policy=spy)
    shown = spy.shown[1].jobs[0]
    # At 1 s: a has sent a half to b and to c, d a half to c.
    left = {
        "out": {host: sum(d.bytes for d in shown.demand if d.src == host) / SECOND for host in "ad"},
        "in": {host: sum(d.bytes for d in shown.demand if d.dst == host) / SECOND for host in "bc"},
    }
    assert left == {"out": pytest.approx({"a": 2, "d": 0.5}), "in": pytest.approx({"b": 1.5, "c": 1})}
    assert shown.iterations_left == 1
    assert shown.sent_bytes == pytest.approx({"a": SECOND, "d": SECOND / 2})
    assert spy.shown[0].jobs[0].sent_bytes == {}


def test_a_training_job_shows_its_iterations_and_its_metric() -> None:
    spy = Spy()
    step = (Compute(0.5), transfer(("a", "b", 0.5)))
    job = SimJob(id="1", lanes=(step,), iterations=4, curve=(0.1, 0.2, 0.3, 0.4), stage="s", rungs_left=1, weight=2.0)
    run(job, coflow("2", ("e", "f", 1), arrival=2.75), policy=spy)
    shown = spy.shown[1].jobs[0]
    assert [(point.iteration, point.time, point.metric) for point in shown.progress] == [(1, 1, 0.1), (2, 2, 0.2)]
    assert (shown.iterations_left, shown.iterations_total, shown.compute_seconds) == (2, 4, 0.5)
    assert shown.demand == (Demand("a", "b", 0.5 * SECOND),)
    assert shown.sent_bytes == pytest.approx({"a": 1.25 * SECOND})
    assert (shown.stage, shown.rungs_left, shown.weight) == ("s", 1, 2.0)
    assert [stage.jobs for stage in spy.shown[1].stages] == [("1",)]


def test_training_jobs_are_shown_one_beside_the_other_and_anew_only_when_they_have_sent() -> None:
    spy = Spy()
    pair = transfer(("b", "a", 0.5), ("a", "b", 1), ("b", "c", 0))
    near = SimJob("near", lanes=((Compute(3.0), pair),), iterations=2, curve=(0.5, 0.6))
    far = SimJob("far", lanes=((transfer(("d", "c", 4)),),), iterations=2, curve=(0.2, 0.4))
    run(near, far, policy=spy, period=1.0)
    shown = {shot.now: {job.id: job for job in shot.jobs} for shot in spy.shown}
    assert shown[2.0]["near"] is shown[1.0]["near"], "it computes"
    assert [shown[now]["near"].sent_bytes for now in (2.0, 3.0)] == [{}, {}]
    assert shown[4.0]["near"].sent_bytes == pytest.approx({"a": SECOND, "b": SECOND / 2})
    assert shown[4.0]["near"].iterations_done == 1
    assert shown[6.0]["near"] is shown[5.0]["near"], "it computes again"
    assert [shown[now]["far"].sent_bytes["d"] for now in (1.0, 2.0, 6.0)] == pytest.approx(
        [SECOND, 2 * SECOND, 6 * SECOND]
    )


def test_a_long_history_is_thinned_evenly_and_keeps_its_last_point() -> None:
    spy = Spy()
    job = SimJob(id="1", lanes=((Compute(1.0),),), iterations=5000, curve=tuple(k / 5000 for k in range(1, 5001)))
    run(job, policy=spy, period=37.0, classes=1)
    for snapshot in spy.shown[1:]:
        points = snapshot.jobs[0].progress
        assert points[-1].iteration == pytest.approx(snapshot.now, abs=1)
        assert len(points) <= 401
        steps = np.diff([0, *(point.iteration for point in points)])
        assert len(set(steps[:-1])) <= 1
        assert all(point.metric == point.iteration / 5000 for point in points)
