"""Measured operators correct the predictions of others of their family; the most useful ones are measured first."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepprophet.costs import costs as costing
from deepprophet.costs.corrections import FamilyCorrection
from deepprophet.costs.measured import Measurement
from deepprophet.device.what_to_measure import SET_UP_SECONDS, Candidate, in_order, unmeasured
from deepprophet.graph.graph import Graph
from tests.support.prophet_world import calibration, key, operator, roofline

MATMUL = roofline(once=1.0)
SECONDS = st.floats(1e-6, 10.0)


def measurement(seconds: float) -> Measurement:
    return Measurement(seconds, seconds, seconds, seconds)


def test_nothing_measured_corrects_nothing() -> None:
    assert FamilyCorrection().factor(MATMUL, "float32", 1.0) == 1.0
    other = roofline("copy", once=1.0)
    correction = FamilyCorrection([(other, "float32", 1.0, 2.0), (MATMUL, "bfloat16", 1.0, 2.0)])
    assert correction.factor(MATMUL, "float32", 1.0) == 1.0


def test_the_more_were_measured_the_more_of_what_they_were_off_is_taken_over() -> None:
    for count in (1, 3, 99):
        correction = FamilyCorrection([(MATMUL, "float32", 1.0, 2.0)] * count)
        assert correction.factor(MATMUL, "float32", 1.0) == pytest.approx(2.0 ** (count / (count + 1)))


def test_those_of_the_same_length_count_most() -> None:
    correction = FamilyCorrection([(MATMUL, "float32", 1.0, 2.0), (MATMUL, "float32", 100.0, 50.0)])
    assert correction.factor(MATMUL, "float32", 1.0) > 1.35
    assert correction.factor(MATMUL, "float32", 100.0) < 1 / 1.35
    assert correction.factor(MATMUL, "float32", 10.0) == pytest.approx(1.0)


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=9), SECONDS)
def test_a_correction_stays_within_what_was_measured(pairs: list[tuple[float, float]], said: float) -> None:
    correction = FamilyCorrection([(MATMUL, "float32", one, other) for one, other in pairs])
    off = [max(-math.log(4), min(math.log(other / one), math.log(4))) for one, other in pairs]
    assert min([0.0, *off]) - 1e-9 <= math.log(correction.factor(MATMUL, "float32", said)) <= max([0.0, *off]) + 1e-9


def test_costs_of_what_was_not_measured_follow_what_was() -> None:
    known = calibration({}, rooflines=(MATMUL, roofline("copy", once=1.0)))
    relative, stranger = operator(size=10), operator(size=11, family="copy", name="aten.clone.default")
    one = Graph((operator(size=9), relative, stranger), (), (), 1, "float32")
    found = costing.costs(one, known, {key(size=9): measurement(4.0)})
    assert [part.seconds for part in found] == [pytest.approx(4.0), pytest.approx(2.0), pytest.approx(1.0)]
    assert (found[1].low, found[1].high) == (pytest.approx(1.0), pytest.approx(4.0))
    assert [part.way for part in found] == ["measured", "roofline", "roofline"]


def test_what_is_not_in_the_table_is_wanted_as_often_as_it_is_called() -> None:
    known = calibration({key(): 1.0}, rooflines=(MATMUL,))
    often, strange = operator(size=9), operator(size=3, name="mine.own.default", family="other")
    one = Graph((operator(), often, often, often, strange), (), (), 1, "float32")
    first, second = unmeasured(one, known)
    assert (first.operator.key, first.kind) == (strange.key, None)
    assert (second.operator.key, second.once, second.all) == (often.key, 1.0, 3.0)
    assert second.kind is not None
    assert second.takes(4) == 4.0 + SET_UP_SECONDS


def test_order() -> None:
    """Unknown families, then what an iteration has often; a second one of a kind waits for the first of another."""

    def one(size: int, once: float, times: int, kind: str | None) -> Candidate:
        return Candidate(operator(size=size), once, once * times, kind)

    found = [one(1, 1.0, 1, "a"), one(2, 0.8, 1, "a"), one(3, 0.6, 1, "b"), one(4, 0.5, 9, "b"), one(5, 1e-9, 1, None)]
    order = [each.operator for each in in_order(found, 4)]
    assert order == [operator(size=size) for size in (5, 4, 2, 1, 3)]


@given(st.lists(st.tuples(SECONDS, st.integers(1, 9), st.sampled_from([None, "a", "b"])), max_size=12))
def test_each_comes_once(drawn: list[tuple[float, int, str | None]]) -> None:
    found = [Candidate(operator(size=n), once, once * times, kind) for n, (once, times, kind) in enumerate(drawn)]
    order = list(in_order(found, 4))
    assert sorted(each.operator.key for each in order) == sorted(each.operator.key for each in found)
    assert [each.kind is None for each in order] == sorted((each.kind is None for each in found), reverse=True)
