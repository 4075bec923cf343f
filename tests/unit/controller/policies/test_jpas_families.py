"""JPAS and the earlier runs of a job's family: who goes first, what is said, and what is ignored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.families.build import history_of
from controller.families.history import FamilyHistory
from controller.families.run import EarlierRun
from controller.families.summary import summary
from controller.model import Demand, Host, Job, Metric, Ordering, Snapshot
from controller.policies.jpas import Jpas
from tests.support.controller.registry.family_runs import reported, rising

HOSTS = {"h1": Host("h1", 1e8, 1e8), "h2": Host("h2", 1e8, 1e8)}


def family(name: str, *scales: float) -> FamilyHistory:
    return history_of(name, [kept(i, scale) for i, scale in enumerate(scales)], Metric())


def kept(number: int, scale: float) -> EarlierRun:
    reports = reported(rising(scale=scale))
    return summary((f"run{number}", float(number)), reports, Metric(), ended_at=float(number), declared=100.0)


EARLY, LATE = family("early", 3.0, 3.5, 4.0), family("late", 25.0, 26.0, 27.0)


def job(name: str, done: int, history: FamilyHistory | None, *, scale: float = 10.0) -> Job:
    progress = tuple(reported(rising(scale=scale))[:done])
    return Job(
        name,
        (Demand("h1", "h2", 1e6),),
        iterations_left=100.0 - done,
        iterations_total=100.0,
        progress=progress,
        family=history,
    )


def order(*jobs: Job, previous: Ordering | None = None) -> Ordering:
    return Jpas().order(Snapshot(10.0, HOSTS, jobs), previous)


def test_a_new_job_goes_by_what_its_family_took() -> None:
    found = order(job("late", 0, LATE), job("plain", 0, None), job("early", 0, EARLY))
    assert found.bands == (("early",), ("plain",), ("late",))
    assert "3 earlier runs of its family" in found.reasons["early"]
    assert "its length alone" in found.reasons["plain"]


def test_a_job_that_reports_goes_by_earlier_runs() -> None:
    """Both jobs have reported the same. Runs of the family reach 90 % at iteration 23."""
    alike = family("a", 9.0, 10.0, 11.0)
    before = order(job("plain", 20, None), job("family", 20, alike))
    assert before.bands == (("family",), ("plain",))
    assert before.reasons["family"].endswith("by 3 earlier runs")
    assert order(job("family", 45, alike), job("plain", 45, None)).bands == (("plain",), ("family",))


def test_a_family_that_is_ignored_changes_nothing() -> None:
    closed = family("one", 3.0)
    assert not closed.gate.is_open
    for done in (0, 2, 10, 50, 90):
        others = job("a", 20, None), job("b", 40, None)
        assert order(job("c", done, closed), *others) == order(job("c", done, None), *others)


def test_a_family_does_not_matter_where_the_length_is_not_known() -> None:
    known, unknown = (replace(job("c", 20, history), iterations_total=None) for history in (EARLY, None))
    assert order(known, job("a", 30, None)) == order(unknown, job("a", 30, None))


def test_a_target_and_a_family_are_known_together() -> None:
    both = replace(job("both", 10, LATE), target=0.8)
    found = order(both, job("a", 10, None))
    assert "its target (accuracy 0.8)" in found.reasons["both"]
    assert found.reasons["both"].endswith("by 3 earlier runs")


def test_a_restart_orders_the_same() -> None:
    again = family("late", 25.0, 26.0, 27.0)
    jobs = (job("a", 12, LATE), job("b", 30, EARLY), job("c", 55, None))
    fresh = (job("a", 12, again), *jobs[1:])
    assert order(*jobs) == order(*fresh)


@pytest.mark.parametrize("done", [3, 10])
def test_runs_that_end_change_the_index_without_a_new_report(done: int) -> None:
    one = job("a", done, EARLY)
    before = Jpas().order(Snapshot(10.0, HOSTS, (one,)), None)
    after = Jpas().order(Snapshot(10.0, HOSTS, (replace(one, family=LATE),)), before)
    assert before.reasons["a"] != after.reasons["a"]
