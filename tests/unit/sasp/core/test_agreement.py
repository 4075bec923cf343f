"""When a rank of an all-reduce begins a round, and what a round takes."""

from __future__ import annotations

from sasp.core.agreement import Agreement
from sasp.core.chunks import Layout


def test_small_layers_wait_for_each_other_until_they_are_worth_a_round() -> None:
    agreement = Agreement(Layout([3, 3, 3, 3], 6))
    assert not agreement.has_news_of(6)
    agreement.ready_now(3)
    assert not agreement.has_news_of(6)
    agreement.ready_now(2)
    assert agreement.has_news_of(6)
    agreement.learn([0, 0, 1, 1])
    assert not agreement.has_news_of(6)
    assert agreement.has_unsent


def test_the_end_of_an_iteration_is_worth_a_round_however_little_is_left() -> None:
    agreement = Agreement(Layout([1, 8], 6))
    agreement.ready_now(1)
    agreement.learn([0, 1])
    assert not agreement.has_news_of(6)
    agreement.ready_now(0)
    assert agreement.has_news_of(6)
    agreement.learn([1, 1])
    assert not agreement.has_news_of(6)


def test_a_rank_that_is_ahead_has_news_until_all_have_what_it_has() -> None:
    agreement = Agreement(Layout([4, 8], 6))
    agreement.ready_now(1)
    assert agreement.has_news_of(6)
    agreement.learn([0, 0])
    assert agreement.has_news_of(6)
    agreement.learn([0, 1])
    assert agreement.dequeue(12) == [(1, 1), (1, 2)]
    assert not agreement.has_unsent
