"""A policy is asked only where its order can be another: what it then says is what it would have said each time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from controller.model import Demand, Host, Ordering, Snapshot
from controller.policies.base import DependsOn, Policy
from controller.policies.fair import Fair
from controller.policies.fifo import Fifo
from controller.policies.registry import available
from controller.policies.sebf import Sebf
from controller.policies.tensorlights_one import TensorLightsOne
from simulator.engine import Limits, simulate
from simulator.jobs import SimJob, Transfer, Workload
from simulator.outcome import Outcome
from tests.support.simulator.sim_reference import random_workload

DECLARED = {
    "fair": DependsOn.NOTHING,
    "fifo": DependsOn.ARRIVALS,
    "tensorlights-one": DependsOn.DECLARED,
    "tensorlights-rr": DependsOn.DECLARED,
}
OPTIONS: Mapping[str, Mapping[str, object]] = {
    "tensorlights-rr": {"rotate_seconds": 0.7},
    "las": {"first_seconds": 0.5},
    "sincronia": {"online": True, "unit_seconds": 0.5},
}
LIMITS = (
    Limits(),
    Limits(quantum=0.25),
    Limits(rates="madd"),
    Limits(delay=0.4),
    Limits(period=1.3),
    Limits(classes=2, period=1.3),
)


def same(one: Outcome, other: Outcome) -> bool:
    return (one.plans, one.port_bytes) == (other.plans, other.port_bytes) and [
        (job.id, job.arrival, job.end, job.iteration_ends.tolist()) for job in one.jobs.values()
    ] == [(job.id, job.arrival, job.end, job.iteration_ends.tolist()) for job in other.jobs.values()]


def counting(policy: type[Policy], *, depends_on: DependsOn | None = None) -> type[Policy]:
    """The policy, which says how often it was asked and what it was shown."""

    class Counting(policy):  # type: ignore[valid-type, misc]  # it is made of whichever policy is given
        order_depends_on = policy.order_depends_on if depends_on is None else depends_on

        def __init__(self, **options: object) -> None:
            super().__init__(**options)
            self._shown: list[Snapshot] = []

        def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
            self._shown.append(snapshot)
            return super().order(snapshot, previous)

        @property
        def shown(self) -> list[Snapshot]:
            return self._shown

    return Counting


def test_our_policies_declare_what_their_order_depends_on() -> None:
    usual = dict.fromkeys(available(), DependsOn.EVERYTHING)
    assert {name: policy.order_depends_on for name, policy in available().items()} == usual | DECLARED


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("name", sorted(available()))
def test_an_outcome_is_the_same_to_the_last_bit_where_every_plan_has_a_snapshot(name: str, limits: Limits) -> None:
    policy = available()[name]
    always = counting(policy, depends_on=DependsOn.EVERYTHING)
    options = OPTIONS.get(name, {})
    for seed in range(12 if name in DECLARED else 2):
        workload = random_workload(seed, coflows=seed % 3 > 0)
        asked = always(**options)
        full = simulate(workload, asked, limits)
        assert len(asked.shown) == full.plans
        assert same(simulate(workload, policy(**options), limits), full)


def burst(coflows: int) -> Workload:
    """Coflows of 1 MB, one after the other each 0.1 ms, between one pair of hosts: all are in flight at once."""
    transfer = Transfer((Demand("a", "b", 1e6),))
    jobs = tuple(SimJob(f"c{i}", ((transfer,),), arrival=i * 1e-4) for i in range(coflows))
    return Workload("burst", {name: Host(name) for name in "ab"}, jobs)


@pytest.mark.parametrize(("policy", "most"), [(Fair, 0), (Fifo, 60), (TensorLightsOne, 120)])
def test_who_depends_on_less_is_asked_less_and_shown_each_coflow_once(policy: type[Policy], most: int) -> None:
    asked = counting(policy)()
    outcome = simulate(burst(60), asked, Limits())
    assert outcome.plans > 110
    assert len(asked.shown) <= most
    assert all(len({id(job) for job in jobs}) == 1 for jobs in by_coflow(asked.shown).values())


def test_only_coflows_that_have_sent_since_are_shown_anew() -> None:
    asked = counting(Sebf)()
    simulate(burst(60), asked, Limits())
    looks = sum(len(jobs) for jobs in by_coflow(asked.shown).values())
    shown = sum(len({id(job) for job in jobs}) for jobs in by_coflow(asked.shown).values())
    assert looks > 1500, "so many there would be if all were made anew"
    assert shown < 300, "one or two send at a time, and each is looked at when it comes"


def by_coflow(snapshots: list[Snapshot]) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for snapshot in snapshots:
        for job in snapshot.jobs:
            found.setdefault(job.id, []).append(job)
    return found


def test_a_subclass_with_an_order_of_its_own_depends_on_everything_until_it_says_otherwise() -> None:
    class Backwards(Fair):
        def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
            bands = tuple((job.id,) for job in reversed(snapshot.jobs))
            return replace(super().order(snapshot, previous), bands=bands)

    class Renamed(Fair):
        name = "renamed"

    assert Backwards.order_depends_on is DependsOn.EVERYTHING
    assert Renamed.order_depends_on is DependsOn.NOTHING
    jobs = simulate(burst(2), Backwards(), Limits()).jobs
    assert jobs["c1"].end < jobs["c0"].end


@pytest.mark.parametrize("name", sorted(available()))
@pytest.mark.parametrize("limits", [Limits(), Limits(quantum=0.25), Limits(classes=2, period=1.5)], ids=str)
def test_times_far_from_zero_lose_no_digits(name: str, limits: Limits) -> None:
    far = 1.7e9  # a Unix time in seconds; as a float it is a multiple of 2.4e-7
    random = Random(name)
    for seed in range(3):
        workload = random_workload(seed, coflows=seed > 0)
        near = [
            replace(job, arrival=0.0 if i == 0 else random.randrange(16) / 4) for i, job in enumerate(workload.jobs)
        ]
        moved = [replace(job, arrival=job.arrival + far) for job in near]
        make = available()[name]
        expected = simulate(replace(workload, jobs=tuple(near)), make(**OPTIONS.get(name, {})), limits)
        assert same(simulate(replace(workload, jobs=tuple(moved)), make(**OPTIONS.get(name, {})), limits), expected)
