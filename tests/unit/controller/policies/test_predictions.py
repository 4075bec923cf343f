"""What JPAS predicts of a job, as a plan tells it."""

from __future__ import annotations

from controller.model import Demand, Host, Job, Ordering, Snapshot
from controller.policies.jpas import Jpas
from tests.support.controller.registry.family_runs import reported, rising

HOSTS = {"h1": Host("h1", 1e8, 1e8), "h2": Host("h2", 1e8, 1e8)}


def order(done: int, target: float | None = None) -> Ordering:
    progress = tuple(reported(rising(scale=10.0))[:done])
    job = Job(
        "a",
        (Demand("h1", "h2", 1e6),),
        iterations_left=100.0 - done,
        iterations_total=100.0,
        progress=progress,
        target=target,
    )
    return Jpas().order(Snapshot(10.0, HOSTS, (job,)), None)


def test_a_job_that_reports_has_both_shares_of_convergence() -> None:
    t90, t95 = order(20).predictions["a"]
    assert (t90.target, t95.target) == ("t90", "t95")
    assert t90.low <= t90.iteration <= t90.high
    assert 10 < t90.iteration < t95.iteration <= 100
    assert t90.metric < t95.metric


def test_a_declared_target_comes_last() -> None:
    *_, declared = order(20, target=0.7).predictions["a"]
    assert (declared.target, declared.metric) == ("target", 0.7)


def test_a_job_without_a_fit_has_none() -> None:
    assert order(2).predictions == {}


def test_a_target_is_reached_or_expected_and_the_reason_says_the_same() -> None:
    for done in range(5, 100, 3):
        ordering = order(done)
        t90, t95 = ordering.predictions["a"]
        assert t90.is_reached >= t95.is_reached
        assert t95.is_reached is ("it is past 95 % of convergence" in ordering.reasons["a"]), done
        for each in (t90, t95):
            assert each.iteration <= done if each.is_reached else each.iteration >= done
            assert each.low <= each.iteration <= each.high
    assert t95.is_reached
    assert order(80, target=0.5).predictions["a"][-1].is_reached
