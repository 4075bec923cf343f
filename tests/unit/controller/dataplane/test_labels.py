"""Rules as read from a switch get the names of their jobs, in pieces. Pure."""

from __future__ import annotations

from controller.dataplane.openflow import HeldRule, job_tag, label, rules_and_tags
from controller.pieces import whole
from controller.rules.rule import PIECE, Match, Rule, SetClass, Table

COUNT = 3 * PIECE


def wanted(port: int, service_class: int = 0, job: str | None = None) -> Rule:
    return Rule(1, Table.PAIRS, 1, Match(tcp_dst=port), (SetClass(service_class),), job=job or f"job-{port % 7}")


def as_read(rule: Rule) -> HeldRule:
    return HeldRule(rule._replace(job=None), job_tag(rule.job), rule.table, rule.priority, None)


def test_rules_that_a_switch_holds_as_wanted_have_the_names_of_their_jobs() -> None:
    held = [wanted(port) for port in range(COUNT)]
    foreign = HeldRule(None, 0, 1, 1, None)
    rules, tags = whole(rules_and_tags([*map(as_read, held), foreign]))
    assert len(rules) == len(tags) == COUNT
    other_class, other_job, new = wanted(0, 1), wanted(1, job="another"), wanted(COUNT)
    labelled = whole(label(rules, tags, [*held[2:], other_class, other_job, new]))
    assert labelled == {*held[2:], held[0]._replace(job=None), held[1]._replace(job=None)}
    assert whole(label(rules, {}, held)) is rules, "none of them is of a job"


def test_others_may_go_on_between_the_pieces() -> None:
    held = [wanted(port) for port in range(COUNT)]
    rules, tags = whole(rules_and_tags(map(as_read, held)))
    assert len(list(rules_and_tags(map(as_read, held)))) == COUNT // PIECE
    assert len(list(label(rules, tags, held))) == 2 * COUNT // PIECE
