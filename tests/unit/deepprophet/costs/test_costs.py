"""The cost of an operator, worked out by hand: from the table, just measured, by family, or guessed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from deepprophet.costs import costs as costing
from deepprophet.costs.costs import UNSEEN
from deepprophet.costs.measured import Measurement
from deepprophet.graph.graph import Graph
from deepprophet.predict import document
from tests.support.prophet_world import calibration, context, graph, key, operator, roofline


def test_cost_from_the_table_by_how_far_its_inputs_are() -> None:
    known = calibration(contexts=(context(near=2.0, far=0.5, byte=1e-3, calls=(0.01, 0.5, 0.5)),))
    known = known.with_table({key(): Measurement(1.0, 3.0, 0.9, 1.3)})
    one = Graph((operator(far=0.25, bytes=40.0),), (), (), 1, "float32")
    (cost,) = costing.costs(one, known, {})
    assert cost.seconds == pytest.approx(2.0 + 2.0 * 0.5 * 0.25 + 0.04 + 0.01)
    assert cost.high - cost.seconds == pytest.approx(2.0 * 0.3)
    assert cost.seconds - cost.low == pytest.approx(2.0 * 0.1)
    assert cost.way == "table"


def test_what_was_just_measured_counts_before_the_table() -> None:
    one = Graph((operator(),), (), (), 1, "float32")
    (cost,) = costing.costs(one, calibration(), {key(): Measurement(0.5, 0.5, 0.5, 0.5)})
    assert (cost.seconds, cost.way) == (0.5, "measured")


def test_roofline_of_the_family_with_its_spread() -> None:
    known = calibration({key(): 1.0}, rooflines=(roofline(once=0.1, flop=1e-3, byte=1e-2),))
    one = Graph((operator(size=9, flops=100.0, bytes=50.0),), (), (), 1, "float32")
    (cost,) = costing.costs(one, known, {})
    assert cost.seconds == pytest.approx(0.1 + 0.1 + 0.5)
    assert (cost.low, cost.high) == (pytest.approx(0.35), pytest.approx(1.4))
    assert cost.way == "roofline"
    assert list(costing.unseen(one, [cost])) == [key(size=9)]


def test_operators_of_unknown_families_are_told_first_and_apart_however_short() -> None:
    known = calibration({key(): 1.0}, rooflines=(roofline(once=0.1, flop=1e-3, byte=1e-2),))
    long = operator(size=9, flops=1e4, bytes=1e4)
    strange = [replace(operator(size=size), family="strange", bytes=size) for size in (2, 3)]
    one = Graph((long, *strange), (), (), 1, "float32")
    unseen = costing.unseen(one, costing.costs(one, known, {}))
    assert list(unseen) == [strange[1].key, strange[0].key, long.key]
    told = dict(document.unseen_facts(unseen))
    assert told["unknown family"].startswith("2 operators")
    assert "[3,3]" in told["unknown family"]
    assert "[9,9]" not in told["unknown family"]
    assert told["never measured"].startswith("1 operator,")
    assert "[9,9]" in told["never measured"]


def test_what_was_measured_is_told_last_and_apart() -> None:
    known = calibration({key(): 1.0}, rooflines=(roofline(once=0.1),))
    one = Graph((operator(size=9), operator(size=10)), (), (), 1, "float32")
    unseen = costing.unseen(one, costing.costs(one, known, {key(size=9): Measurement(5.0, 5.0, 5.0, 5.0)}))
    assert [(name, part.way) for name, part in unseen.items()] == [
        (key(size=10), "roofline"),
        (key(size=9), "measured"),
    ]
    told = dict(document.unseen_facts(unseen))
    assert "[9,9]" in told["measured just now"] and "[9,9]" not in told["never measured"]


def test_other_type_of_number_widens_the_interval() -> None:
    known = calibration(rooflines=(roofline(once=1.0),))
    one = Graph((operator(size=9, dtype="bfloat16"),), (), (), 1, "bfloat16")
    (cost,) = costing.costs(one, known, {})
    assert cost.high == pytest.approx(3.0)


def test_family_never_seen_is_a_guess_with_a_wide_interval() -> None:
    known = calibration(rooflines=(roofline("copy", once=1.0), roofline("pool", once=2.0), roofline("view", once=9.0)))
    one = Graph((operator(name="mine.special.default", family="other"),), (), (), 1, "float32")
    (cost,) = costing.costs(one, known, {})
    assert cost.way == "guess"
    assert cost.high >= UNSEEN * cost.seconds
    assert cost.low <= cost.seconds / UNSEEN


def test_no_roofline_at_all_is_still_an_answer() -> None:
    one = Graph((operator(size=9),), (), (), 1, "float32")
    (cost,) = costing.costs(one, calibration(), {})
    assert cost.way == "guess"


def test_same_shapes_err_together_and_others_do_not() -> None:
    known = calibration().with_table(
        {key(size=n): Measurement(1.0, 1.0, 0.7, 1.3) for n in (8, 9, 10, 11)}
    )  # fmt: skip
    same = Graph(tuple(operator() for _ in range(4)), (), (), 1, "float32")
    other = Graph(tuple(operator(size=n) for n in (8, 9, 10, 11)), (), (), 1, "float32")
    for one, of_operators in ((same, 1.2), (other, 0.6)):
        seconds, low, high = costing.total(costing.costs(one, known, {}), known.contexts[0], one.times())
        assert seconds == 4.0
        half = math.hypot(of_operators, 4.0 * costing.OTHER_MODEL)
        assert (seconds - low, high - seconds) == (pytest.approx(half), pytest.approx(half))


def test_whole_iterations_error_is_added() -> None:
    known = calibration(contexts=(context(low=0.8, high=1.3),))
    seconds, low, high = costing.total(costing.costs(graph(), known, {}), known.contexts[0], graph().times())
    assert (1.0 - low / seconds) ** 2 == pytest.approx(0.2**2 + costing.OTHER_MODEL**2)
    assert (high / seconds - 1.0) ** 2 == pytest.approx(0.3**2 + costing.OTHER_MODEL**2)


def test_between_two_numbers_of_neighbours() -> None:
    contexts = (context(neighbours=0, near=1.0), context(neighbours=4, near=2.0))
    assert [costing.context_for(contexts, n).near for n in (0, 1, 4, 9)] == [1.0, 1.25, 2.0, 2.0]
