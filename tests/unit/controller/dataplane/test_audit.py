"""What is asked of a switch at each look, and what is said of repairs. Pure."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.dataplane.audit import (
    ALL,
    COMPARED,
    MOST_PIPELINE,
    PIPELINE,
    Part,
    Repairs,
    agrees,
    by_tag,
    in_words,
    parts,
)
from controller.dataplane.openflow import HeldRule, job_tag
from controller.pieces import whole
from controller.rules.rule import PIECE, Match, Rule, Table


def covers(part: Part, tag: int) -> bool:
    return tag & part.mask == part.value


@pytest.mark.parametrize("jobs", [100, 1000, 4000])
def test_every_rule_is_read_in_its_turn_and_a_look_costs_the_same(jobs: int) -> None:
    tags = [job_tag(f"job-{i}") for i in range(jobs)]
    turns = 2 * jobs // COMPARED + 1
    read: set[int] = set()
    for turn in range(turns):
        asked = parts(turn, 20, jobs)
        assert asked[0] == PIPELINE, "what forwards packets is read at each look"
        found = [tag for tag in tags if any(covers(part, tag) for part in asked)]
        assert len(found) < 3 * COMPARED
        read.update(found)
    assert read == set(tags)


def test_many_switches_cost_together_what_a_few_do() -> None:
    for switches in (1, 4, 5, 10, 40):
        read = [bool(parts(turn, 20, 1000, switches=switches)) for turn in range(1000)]
        assert sum(read) * switches / 1000 <= 5
        assert sum(read) * switches / 1000 >= min(switches, 2)
    first = [part for turn in range(4) for part in parts(turn, 20, 1000, switches=5)]
    assert first == [*parts(0, 20, 1000), *parts(1, 20, 1000)], "nothing is left out"


def test_a_small_table_is_read_whole_and_a_big_pipeline_seldom_or_never() -> None:
    assert parts(7, 12, COMPARED - 12) == (ALL,)
    big = [turn for turn in range(100) if PIPELINE in parts(turn, 3 * COMPARED, 0)]
    assert big == list(range(0, 100, 4))
    assert not any(parts(turn, MOST_PIPELINE + 1, 0) for turn in range(100))


def test_no_part_of_the_jobs_has_the_pipeline_or_the_gate() -> None:
    for turn in range(70):
        _, of_jobs = parts(turn, 20, 4000)
        assert not covers(of_jobs, 0)
        assert not of_jobs.has_gate
    assert ALL.has_gate
    assert PIPELINE.has_gate


def test_what_was_put_right_is_one_sentence() -> None:
    rules = [
        Rule(1, Table.FORWARD, 0, Match()),
        Rule(1, Table.CLASSIFY, 1, Match()),
        Rule(1, Table.CLASSIFY, 2, Match()),
    ]
    assert in_words(rules, 1, gate=True) == (
        "3 rules that had been deleted or changed were put back (2 in table 1, 1 in table 6); "
        "1 rule with Trainyard's cookie that Trainyard had not made was deleted; "
        "the gate had been deleted or changed and was opened again"
    )
    assert in_words([], 0, gate=False) is None


def test_a_repair_is_said_at_once_and_those_of_the_minute_after_it_in_one_line() -> None:
    repairs = Repairs()
    assert repairs.note("a", 100.0) == "a"
    assert [repairs.note("b", 101.0 + i) for i in range(5)] == [None] * 5
    assert repairs.due(150.0) is None
    assert repairs.problem(150.0) == "somebody else changed it 45 s ago: b"
    assert repairs.due(160.0) == "b; 4 more times within a minute"
    assert repairs.due(161.0) is None
    assert repairs.problem(166.0) is None
    assert repairs.count == 6


def test_rules_are_sorted_by_their_jobs_in_pieces_and_a_part_agrees_with_what_was_read() -> None:
    jobs = [None, *(f"job-{i}" for i in range(200))]
    held = [Rule(1, Table.PAIRS, 1, Match(tcp_dst=port), job=jobs[port % len(jobs)]) for port in range(4 * PIECE)]
    assert len(list(by_tag(held, {}))) == 4, "others may go on meanwhile"
    sorted_rules = whole(by_tag(held, {}))
    assert {tag: len(rules) for tag, rules in sorted_rules.items()} == Counter(job_tag(rule.job) for rule in held)
    part = Part(job_tag("job-7") & 0xFF, 0xFF)
    answers = [HeldRule(rule, job_tag(rule.job), 4, 1, None) for rule in held if covers(part, job_tag(rule.job))]
    assert agrees(part, sorted_rules, answers)
    assert not agrees(part, sorted_rules, answers[1:]), "one is missing"
    assert agrees(part, sorted_rules, answers[1:], {answers[0].rule.key}), "it was changed since the switch was asked"
    assert not agrees(part, sorted_rules, answers[2:], {answers[0].rule.key}), "another one is missing, too"
    assert not agrees(PIPELINE, sorted_rules, answers), "these are others"
