"""Which reports a fit is made of, and when it is made anew."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from controller.curves import fit as curves
from controller.curves.remembered import Remembered
from controller.model import Job, Metric, Progress


@pytest.fixture
def fitted() -> list[int]:
    """How many reports each history had that was fitted."""
    return []


def empty(fitted: list[int]) -> Remembered:
    """Returns an empty memory; what it fits is noted in ``fitted``."""

    def fit_many(histories):
        fitted.extend(len(history.reports) for history in histories)
        return curves.fit_many(histories)

    return Remembered(fit_many)


@pytest.fixture
def memory(fitted) -> Remembered:
    return empty(fitted)


def job(values, name: str = "a", **more) -> Job:
    progress = tuple(Progress(float(k), float(k), float(v)) for k, v in enumerate(values, 1))
    return Job(id=name, demand=(), progress=progress, iterations_total=1000.0, **more)


RISING = 0.9 * (1 - np.exp(-np.arange(1, 1001) / 300))


def test_a_history_is_fitted_anew_when_it_has_grown_by_a_twentieth(fitted, memory) -> None:
    for n in range(100, 112):
        memory.fits([job(RISING[:n])])
    assert len(fitted) in (2, 3, 4)
    assert all(after > 1.04 * before for before, after in pairwise(fitted))


def test_a_short_history_is_fitted_at_nearly_every_report(fitted, memory) -> None:
    for n in range(1, 18):
        memory.fits([job(RISING[:n])])
    assert len(fitted) >= 15
    assert fitted == sorted(set(fitted))


def test_what_was_fitted_does_not_depend_on_what_was_remembered(fitted, memory) -> None:
    for n in range(100, 112):
        (kept,) = memory.fits([job(RISING[:n])])
    memory = empty(fitted)
    (fresh,) = memory.fits([job(RISING[:111])])
    assert kept is not None
    assert fresh is not None
    assert fresh.targets[0].iteration == kept.targets[0].iteration


def test_jobs_of_the_same_reports_share_a_fit_and_others_do_not(fitted, memory) -> None:
    for name in "ab":
        memory.fits([job(RISING[:100], name)])
    assert fitted == [98]
    other = job(RISING[:100], "c", metric=Metric("loss", "min"))
    shorter = replace(job(RISING[:100], "d"), iterations_total=500.0)
    higher = job(RISING[:100] + 1e-9, "e")
    for one in (other, shorter, higher):
        (found,) = memory.fits([one])
        told = curves.FitInput(curves.Reports.of(one.progress[:98]), one.metric, one.iterations_total)
        assert [found] == curves.fit_many([told])
    assert fitted == [98] * 4


@pytest.mark.parametrize(("sign", "metric"), [(1.0, Metric()), (-1.0, Metric("loss", "min"))])
def test_a_target_crossed_since_is_seen_at_once_and_one_outlier_is_not_a_crossing(fitted, memory, sign, metric) -> None:
    values = list(sign * RISING[:99])
    (before,) = memory.fits([job(values, metric=metric)])
    assert before is not None
    assert before.targets[0].crossed < 0.5
    count = len(fitted)
    beyond = before.targets[0].metric + sign * 0.02
    memory.fits([job([*values, beyond], metric=metric)])
    assert len(fitted) == count
    memory.fits([job([*values, beyond, beyond], metric=metric)])
    assert fitted[count:] == [101]
    memory.fits([job([*values, beyond, beyond], metric=metric)])
    assert len(fitted) == count + 1


@pytest.mark.parametrize("by", [-0.05, 0.05])
@pytest.mark.parametrize("report", [0, 50, 99])
def test_a_history_that_is_another_than_before_is_read_anew(fitted, memory, report: int, by: float) -> None:
    memory.fits([job(RISING[:100])])
    other = RISING[:101].copy()
    other[report] += by
    (found,) = memory.fits([job(other)])
    assert len(fitted) == (2 if report < fitted[0] else 1), "a fit stands that the other report was not in"
    memory = empty(fitted)
    assert memory.fits([job(other)]) == [found]


def test_the_last_report_of_a_thinned_history_stands_in_until_the_next(fitted, memory) -> None:
    def thinned(last: int) -> Job:
        reports = [k for k in range(1, last + 1) if k % 4 == 0 or k == last]
        progress = tuple(Progress(float(k), float(k), float(RISING[k - 1])) for k in reports)
        return Job(id="a", demand=(), progress=progress, iterations_total=1000.0)

    for last in range(400, 420):
        (kept,) = memory.fits([thinned(last)])
    assert len(fitted) <= 3
    memory = empty(fitted)
    assert memory.fits([thinned(419)]) == [kept]


def test_an_equal_history_and_one_that_began_later_are_not_confused(fitted, memory) -> None:
    (first,) = memory.fits([job(RISING[:100])])
    (equal,) = memory.fits([job(RISING[:100])])
    assert equal is first
    assert len(fitted) == 1
    (shorter,) = memory.fits([job(RISING[:60])])
    assert shorter.points < 60
    (again,) = memory.fits([job(RISING[:100])])
    assert again == first


def test_a_report_without_a_metric_crosses_nothing(fitted, memory) -> None:
    (before,) = memory.fits([job(RISING[:99])])
    count = len(fitted)
    beyond = before.targets[0].metric + 0.02
    some = job([*RISING[:99], beyond, beyond, beyond])
    silent = tuple(Progress(p.iteration, p.time, p.metric if k < 100 else None) for k, p in enumerate(some.progress))
    memory.fits([Job(id="a", progress=silent, iterations_total=1000.0)])
    assert len(fitted) == count


def test_jobs_are_told_apart_and_too_few_reports_are_no_fit(fitted, memory) -> None:
    found = memory.fits([job(RISING[:50], "a"), job(RISING[:2], "b"), job(RISING[:90:2], "c")])
    assert [fit is None for fit in found] == [False, True, False]
    assert found[0].targets[0].metric != found[2].targets[0].metric
    assert memory.fits([]) == []


def test_a_job_that_has_not_reported_is_fitted_anew_where_its_metric_or_its_length_is_another(fitted, memory) -> None:
    one = job(RISING[:100])
    for now in (one, replace(one, iterations_total=500.0), replace(one, metric=Metric("loss", "min"))):
        (found,) = memory.fits([now])
        (again,) = memory.fits([now])
        assert found is again
        told = curves.FitInput(curves.Reports.of(now.progress[:98]), now.metric, now.iterations_total)
        assert [found] == curves.fit_many([told])
    assert fitted == [98] * 3
