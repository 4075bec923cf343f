"""What a fit is told of a family: its runs that count, where they predict each other."""

from __future__ import annotations

import numpy as np
import pytest

from controller.curves.fit import T90
from controller.families.build import history_of
from controller.families.earlier import earlier_runs
from controller.families.history import FamilyHistory
from controller.families.run import EarlierRun, Ending
from controller.families.summary import summary
from controller.model import Job, Metric
from tests.support.controller.registry.family_runs import earlier, reported, rising


def kept(number: int, scale: float = 10.0, end: float = 0.9) -> EarlierRun:
    reports = reported(rising(end=end, scale=scale))
    return summary((f"run{number}", float(number)), reports, Metric(), ended_at=float(number), declared=100.0)


def job(history: FamilyHistory | None, metric: Metric = Metric()) -> Job:  # noqa: B008 - frozen
    return Job("next", (), metric=metric, family=history)


ALIKE = history_of("f", [kept(i, scale=9.0 + i) for i in range(3)], Metric())


def test_runs_are_told_as_levels_that_fall_and_when_they_were_there() -> None:
    told = earlier_runs(job(ALIKE))
    assert told is not None
    assert told.count == 3
    assert ALIKE.share_t90 is not None
    assert told.share == tuple(ALIKE.share_t90)
    assert told.level.shape == told.at.shape == (3, 64)
    assert (np.diff(told.level, axis=1) <= 0).all()
    assert (np.diff(told.at, axis=1) > 0).all()
    assert told.at[:, -1].tolist() == [1.0, 1.0, 1.0]
    assert told.level[0, -1] == pytest.approx(-0.9, rel=1e-3)


def test_what_is_closed_or_unknown_is_not_told() -> None:
    one = history_of("f", [kept(1)], Metric())
    assert not one.gate.is_open
    for history in (None, FamilyHistory("f"), one):
        assert earlier_runs(job(history)) is None


def test_runs_that_do_not_count_are_not_told() -> None:
    flagged = earlier("flagged", 9.0, ending=Ending.ABORTED)
    with_flagged = history_of("f", [*ALIKE.runs, flagged], Metric())
    told, plain = earlier_runs(job(with_flagged)), earlier_runs(job(ALIKE))
    assert told is not None
    assert told == plain


def test_it_is_made_once_and_equal_after_a_restart() -> None:
    again = history_of("f", [kept(i, scale=9.0 + i) for i in range(3)], Metric())
    other = history_of("f", [kept(i, scale=9.5 + i) for i in range(3)], Metric())
    told = earlier_runs(job(ALIKE))
    assert earlier_runs(job(ALIKE)) is told
    assert earlier_runs(job(again)) is not told
    assert earlier_runs(job(again)) == told
    assert earlier_runs(job(other)) != told


def test_few_runs_that_are_alike_by_chance_leave_some_of_the_priors_spread() -> None:
    told = earlier_runs(job(ALIKE))
    many = earlier_runs(job(history_of("f", [kept(i) for i in range(20)], Metric())))
    assert told is not None
    assert many is not None
    assert told.t90.typical == told.share[0]
    assert told.share[3] < many.t90.spread + told.share[3] < told.t90.spread + told.share[3]
    assert many.t90.spread < told.t90.spread < T90.spread
