"""When to tell again what seldom changes."""

from __future__ import annotations

from controller.events.repeated import SECONDS, Repeated


def test_it_is_told_at_first_where_it_changes_and_after_a_while() -> None:
    repeated = Repeated()
    assert repeated.is_due("a", "waiting", 0.0)
    assert not repeated.is_due("a", "waiting", 1.0)
    assert repeated.is_due("b", "waiting", 1.0)
    assert repeated.is_due("a", "running", 2.0)
    assert not repeated.is_due("a", "running", 2.0 + SECONDS - 0.1)
    assert repeated.is_due("a", "running", 2.0 + SECONDS)
    assert not repeated.is_due("a", "running", 2.0 + SECONDS + 0.1)


def test_a_name_that_is_gone_takes_no_memory() -> None:
    repeated = Repeated()
    repeated.is_due("a", 1, 0.0)
    repeated.forget("a")
    repeated.forget("never")
    assert len(repeated) == 0
    assert repeated.is_due("a", 1, 0.1)
