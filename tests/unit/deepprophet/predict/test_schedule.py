"""An iteration played through by hand: what hides behind the backward pass, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepprophet.predict.exchange import Transfer
from deepprophet.predict.schedule import Plan, Step, play


def link(seconds: float, work: float = 0.0, name: str = "a") -> Transfer:
    return Transfer(seconds, work, (), frozenset({(name, True)}))


def test_transfers_hide_behind_the_backward_pass() -> None:
    plan = Plan(
        (), (Step("forward", 2.0), Step("backward", 1.0, 0), Step("backward", 4.0, 1)), ((link(3.0),), (link(1.5),)),
        (Step("optimizer", 0.5),),
    )  # fmt: skip
    played = play(plan)
    assert played.seconds == pytest.approx(2 + 1 + 4 + 1.5 + 0.5)
    assert played.compute == pytest.approx(7.5)
    assert played.exposed == pytest.approx(1.5)
    assert played.overlapped == pytest.approx(3.0)
    assert [played.spans[n].name for n in played.critical] == [
        "forward",
        "backward",
        "backward",
        "bucket 2",
        "optimizer",
    ]


def test_link_that_is_held_is_waited_for_and_is_on_the_critical_path() -> None:
    plan = Plan((), (Step("backward", 1.0, 0), Step("backward", 1.0, 1)), ((link(5.0),), (link(2.0),)), ())
    played = play(plan)
    assert played.seconds == pytest.approx(8.0)
    assert [played.spans[n].name for n in played.critical] == ["backward", "bucket 1", "bucket 2"]


def test_other_links_are_used_at_once() -> None:
    plan = Plan((), (Step("backward", 1.0, 0), Step("backward", 1.0, 1)), ((link(5.0),), (link(2.0, name="b"),)), ())
    assert play(plan).seconds == pytest.approx(6.0)


def test_buckets_go_in_order_however_they_become_whole() -> None:
    plan = Plan((), (Step("backward", 1.0, 1), Step("backward", 1.0, 0)), ((link(1.0),), (link(1.0),)), ())
    played = play(plan)
    assert [(s.name, s.start) for s in played.spans if s.kind == "communicate"] == [
        ("bucket 1", 2.0),
        ("bucket 2", 3.0),
    ]


def test_push_then_pull_overlap_between_buckets() -> None:
    pair = (link(2.0, name="up"), link(2.0, name="down"))
    plan = Plan((), (Step("backward", 1.0, 0), Step("backward", 1.0, 1)), (pair, pair), ())
    assert play(plan).seconds == pytest.approx(1 + 2 + 2 + 2)


def test_wire_takes_from_a_full_machine_what_it_works() -> None:
    steps = (Step("backward", 1.0, 0), Step("backward", 3.0))
    full = Plan((), steps, ((link(4.0, work=2.0),),), (), crowded=True)
    # While the wire is used, half of a second's work for each second: the device has two thirds of its speed.
    assert play(full).seconds == pytest.approx(1 + 4 + (3 - 4 / 1.5))
    assert play(Plan((), steps, ((link(4.0, work=2.0),),), ())).seconds == pytest.approx(5.0)


def test_nothing_to_do_takes_no_time() -> None:
    played = play(Plan((), (), (), ()))
    assert (played.seconds, played.spans, played.critical) == (0.0, (), ())


PIECES = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=8)


@given(PIECES, st.booleans())
def test_iteration_is_no_shorter_than_either_and_no_longer_than_both(pieces, crowded: bool) -> None:
    steps = tuple(Step("backward", work, n) for n, (work, _) in enumerate(pieces))
    transfers = tuple((link(talk, work=talk / 4),) for _, talk in pieces)
    played = play(Plan((), steps, transfers, (), crowded=crowded))
    work, talk = (sum(column) for column in zip(*pieces, strict=True))
    slow = 1.25 if crowded else 1.0
    assert max(work, talk) <= played.seconds * (1 + 1e-9) + 1e-9
    assert played.seconds <= slow * work + talk + 1e-9
    assert played.compute + played.exposed == pytest.approx(played.seconds)
    path = [played.spans[n] for n in played.critical]
    assert sum(s.end - s.start for s in path) == pytest.approx(played.seconds, abs=1e-6)


@given(PIECES, st.floats(1, 3))
def test_slower_wire_is_never_sooner(pieces, factor: float) -> None:
    def seconds(slow: float) -> float:
        steps = tuple(Step("backward", work, n) for n, (work, _) in enumerate(pieces))
        return play(Plan((), steps, tuple((link(talk * slow),) for _, talk in pieces), ())).seconds

    assert seconds(factor) >= seconds(1.0) - 1e-9
