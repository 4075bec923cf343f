"""What is done with many rules is done in pieces, and comes to the same as if it were done at once. Pure."""

from __future__ import annotations

from typing import TypeVar

from controller.pieces import Steps
from controller.rules.rule import (
    PIECE,
    Difference,
    Match,
    Rule,
    SetClass,
    Table,
    by_key,
    difference,
    difference_in_steps,
    without,
)

T = TypeVar("T")


def rules(first: int, last: int, service_class: int = 0) -> frozenset[Rule]:
    """Returns one rule for each port from ``first`` up to ``last``."""
    actions = (SetClass(service_class),)
    return frozenset(Rule(1, Table.PAIRS, 1, Match(tcp_dst=port), actions) for port in range(first, last))


def done(steps: Steps[T]) -> tuple[T, int]:
    """Returns the result, and how often others may have gone on."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, pauses
        pauses += 1


def test_others_may_go_on_between_the_pieces_of_a_large_difference() -> None:
    held = rules(0, 5000) | rules(5000, 9000)
    wanted = rules(2000, 5000) | rules(5000, 9000, 1) | rules(9000, 12_000)
    found, pauses = done(difference_in_steps(held, wanted))
    # 7,000 rules are added, 4,000 of which replace one, and 6,000 are no longer wanted.
    assert pauses == 7000 // PIECE + 6000 // PIECE
    assert found == difference(held, wanted) == Difference(rules(5000, 9000, 1) | rules(9000, 12_000), rules(0, 2000))


def test_rules_are_found_by_their_keys_and_left_out_by_them() -> None:
    keys, pauses = done(by_key(rules(0, 4000)))
    assert pauses == 4000 // PIECE
    assert set(keys.values()) == rules(0, 4000) and all(rule.key == key for key, rule in keys.items())
    left, pauses = done(without(rules(2000, 7000, 1), keys))
    assert pauses == 5000 // PIECE
    assert left == rules(4000, 7000, 1), "a rule of another class has the same key"
