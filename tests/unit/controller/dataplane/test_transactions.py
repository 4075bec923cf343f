"""The order in which a switch gets the rules of one change. Pure."""

from __future__ import annotations

import random

from controller.dataplane.transactions import in_order
from controller.pieces import whole
from controller.rules.rule import PIECE, Match, Rule, Table


def test_later_tables_come_first_then_higher_priorities_then_jobs_by_name() -> None:
    draw = random.Random(7)
    rules = [
        Rule(1, draw.choice(list(Table)), draw.randrange(5), Match(tcp_dst=port), job=draw.choice([None, "b", "a"]))
        for port in range(3 * PIECE)
    ]
    ordered = whole(in_order(rules))
    assert ordered == sorted(rules, key=lambda rule: (-rule.table, -rule.priority, rule.job or ""))
    assert len(list(in_order(rules))) > 3, "others may go on meanwhile"
