"""How many front layers are late in the end, where an iteration takes what a table says."""

from __future__ import annotations

import pytest

from sasp.core.lead_search import SLACK, LeadSearch


def found(guess: tuple[int, ...], seconds: list[float], without: float = 1.0) -> tuple[tuple[int, ...], int]:
    """The choice and the number of tries; ``seconds``: of an iteration, by the number of layers that are late."""
    search, tries = LeadSearch(guess, without), 0
    while not search.is_over:
        staleness = max(guess)
        search.note(seconds[sum(lead == staleness for lead in search.leads)])
        tries += 1
    return search.leads, tries


@pytest.mark.parametrize("needed", range(1, 9))
@pytest.mark.parametrize("guessed", range(1, 9))
def test_as_few_layers_as_are_fast_enough_are_late_but_no_fewer_than_guessed(needed: int, guessed: int) -> None:
    seconds = [0.9 if late < needed else 0.5 * (1 + SLACK) - 1e-9 if late < 8 else 0.5 for late in range(9)]
    leads, tries = found((1,) * guessed + (0,) * (8 - guessed), seconds)
    late = max(needed, guessed)
    assert leads == (1,) * late + (0,) * (8 - late)
    assert tries <= 5


def test_nothing_is_late_where_staleness_does_not_pay_though_it_was_thought_to() -> None:
    assert found((1, 1, 0, 0), [1.0, 0.97, 0.96, 0.96, 0.96]) == ((0, 0, 0, 0), 1)


def test_layers_behind_keep_what_was_guessed_for_them() -> None:
    seconds = [0.9, 0.9, 0.9, 0.5, 0.5]
    assert found((2, 1, 1, 0), seconds)[0] == (2, 2, 2, 0)


def test_if_all_layers_must_be_late_it_is_tried_once() -> None:
    assert found((1, 1, 1), [1.0, 0.9, 0.8, 0.5]) == ((1, 1, 1), 1)
