"""The planner's contract: checks of what a policy answers, classes, the objective and its bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from controller.model import Demand, Flow, Host, Job, Ordering, Snapshot
from controller.ordering.classes import top
from controller.planner import PlanError, no_judgement, plan
from controller.policies.base import Policy
from controller.policies.fair import Fair
from controller.policies.fifo import Fifo
from controller.policies.las import Las
from controller.policies.registry import PolicyError, available, make
from controller.rules.rule import Match, Rule, Table

HOSTS = {name: Host(name, 1e9, 1e9) for name in ("h1", "h2", "h3")}


def job(name: str, megabytes: float, **more) -> Job:
    return Job(id=name, demand=(Demand("h1", "h2", megabytes * 1e6),), **more)


def snapshot(*jobs: Job, **more) -> Snapshot:
    return Snapshot(now=100.0, hosts=HOSTS, jobs=jobs, **more)


class Scripted(Policy):
    name = "scripted"

    def __init__(self, bands, reasons=None) -> None:
        self.bands, self.reasons = bands, reasons

    def order(self, snapshot, previous) -> Ordering:
        reasons = self.reasons if self.reasons is not None else {j: "why" for band in self.bands for j in band}
        return Ordering("scripted", self.bands, reasons)


def test_the_objective_is_the_weighted_mean_v_and_never_below_its_bound() -> None:
    jobs = (job("a", 125, weight=3.0), job("b", 250, iterations_left=2.0))
    made = plan(snapshot(*jobs), None, policy=Scripted((("b",), ("a",))))
    # a: 1 s, b: 2 x 2 s; b first: V_b = 4, V_a = 5.
    assert made.objective_seconds == pytest.approx((3 * 5 + 1 * 4) / 4)
    assert made.lower_bound_seconds == pytest.approx((3 * 1 + 1 * 5) / 4)
    together = plan(snapshot(*jobs), None, policy=Fair())
    assert together.objective_seconds == pytest.approx(5.0)


def test_a_plan_that_nobody_judges_is_the_same_plan() -> None:
    jobs = (job("a", 125, weight=3.0), job("b", 250, iterations_left=2.0))
    judged = plan(snapshot(*jobs), None, policy=Fifo())
    made = plan(snapshot(*jobs), None, policy=Fifo(), judge=no_judgement)
    assert math.isnan(made.objective_seconds)
    assert math.isnan(made.lower_bound_seconds)
    told = {"objective_seconds": judged.objective_seconds, "lower_bound_seconds": judged.lower_bound_seconds}
    assert replace(made, **told) == judged


def test_no_jobs_make_an_empty_plan() -> None:
    made = plan(snapshot(), None, policy=Fair())
    assert (made.classes, made.objective_seconds, made.lower_bound_seconds) == ({}, 0.0, 0.0)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Scripted((("a",),)), r"left out \['b'\]"),
        (Scripted((("a", "b", "c"),)), r"unknown \['c'\]"),
        (Scripted((("a", "b"), ("a",))), r"twice \['a'\]"),
        (Scripted((("a", "b"),), {"a": "why"}), r"no reason for \['b'\]"),
    ],
)
def test_a_policy_that_breaks_its_contract_is_refused(policy, words) -> None:
    with pytest.raises(PlanError, match=words):
        plan(snapshot(job("a", 1), job("b", 1)), None, policy=policy)


def test_moves_count_jobs_whose_class_changed_and_rules_come_from_the_compiler() -> None:
    jobs = (job("a", 1, arrival=2.0), job("b", 1, arrival=1.0))
    first = plan(snapshot(*jobs), None, policy=Fifo())
    assert (dict(first.classes), first.moves) == ({"b": 0, "a": 1}, 0)

    def compiler(_snapshot: Snapshot, classes: Mapping[str, int]) -> frozenset[Rule]:
        return frozenset(Rule(1, Table.CLASSIFY, c, Match(), job=j) for j, c in classes.items())

    reverse = Scripted((("a",), ("b",)))
    second = plan(snapshot(*jobs), first, policy=reverse, compile_rules=compiler, assign="top")
    assert second.moves == 2
    assert {rule.job: rule.priority for rule in second.rules} == {"a": 0, "b": 1}


def test_layered_classes_are_the_default_and_keep_what_they_can() -> None:
    jobs = (job("a", 1, arrival=1.0), job("b", 1, arrival=2.0), Job("far", (Demand("h3", "h1", 1e6),), arrival=3.0))
    first = plan(snapshot(*jobs), None, policy=Fifo())
    assert dict(first.classes) == {"a": 0, "b": 1, "far": 0}
    # b has to pass a: one of the two moves, not both.
    second = plan(snapshot(*jobs), first, policy=Scripted((("b",), ("a",), ("far",))))
    assert second.moves == 1
    assert second.classes["b"] < second.classes["a"]
    # The first job ends: nobody moves up for that.
    third = plan(snapshot(*jobs[1:]), first, policy=Fifo())
    assert (dict(third.classes), third.moves) == ({"b": 1, "far": 0}, 0)
    with_top = plan(snapshot(*jobs), None, policy=Fifo(), assign="top")
    assert dict(with_top.classes) == {"a": 0, "b": 1, "far": 2}


def test_jobs_conflict_by_their_flows_where_their_demand_is_not_known() -> None:
    jobs = (Job("a", flows=(Flow("a", "h1", "h2", dst_port=1),)), Job("b", flows=(Flow("b", "h3", "h2", dst_port=1),)))
    assert dict(plan(snapshot(*jobs), None, policy=Fifo()).classes) == {"a": 0, "b": 1}


def test_the_previous_ordering_reaches_only_its_own_policy() -> None:
    seen = []

    class Remembering(Scripted):
        def order(self, snapshot, previous):
            seen.append(previous)
            return super().order(snapshot, previous)

    policy = Remembering((("a",),))
    other = plan(snapshot(job("a", 1)), None, policy=Fair())
    own = plan(snapshot(job("a", 1)), other, policy=policy)
    plan(snapshot(job("a", 1)), own, policy=policy)
    assert seen == [None, own.ordering]


def test_top_gives_the_first_bands_a_class_each_and_the_rest_the_last() -> None:
    ordering = Ordering("x", (("a",), ("b", "c"), ("d",), ("e",)), {})
    assert top(ordering, 3) == {"a": 0, "b": 1, "c": 1, "d": 2, "e": 2}
    assert set(top(ordering, 1).values()) == {0}
    with pytest.raises(ValueError, match="at least 1"):
        top(ordering, 0)


def test_fifo_orders_by_arrival_and_las_by_measured_service() -> None:
    early, late = job("z", 1, arrival=1.0), job("a", 1, arrival=2.0)
    assert Fifo().order(snapshot(late, early), None).bands == (("z",), ("a",))
    silent = job("silent", 1, sent_bytes={"h1": 1e9})
    fresh = job("fresh", 1, sent_bytes={"h1": 1e6})
    also = job("also", 1, sent_bytes={"h1": 2e6})
    ordering = Las(first_seconds=1.0).order(snapshot(silent, fresh, also), None)
    assert ordering.bands == (("also", "fresh"), ("silent",))
    assert ordering.reasons["silent"].startswith("has used 8 s of its busiest port: ")


def test_policies_are_found_by_name_and_refuse_wrong_options_in_words() -> None:
    assert {"fair", "fifo", "las", "jpas"} <= set(available())
    for name in available():
        made = make(name).order(snapshot(job("a", 1), job("b", 0)), None)
        assert sorted(j for band in made.bands for j in band) == ["a", "b"]
    for name, options, words in [
        ("nope", {}, "there are: "),
        ("las", {"factor": 1.0}, "factor: 1; it must be a number from 1.01"),
        ("las", {"wrong": 1}, "wrong"),
        ("jpas", {"variant": "best"}, "variant: 'best'"),
        ("jpas", {"ageing_periods": 0}, "ageing_periods"),
    ]:
        with pytest.raises(PolicyError, match=words):
            make(name, options)
