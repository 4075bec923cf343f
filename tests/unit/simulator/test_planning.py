"""When the simulator plans, and from when on a plan is in force."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.model import Metric
from controller.policies.jpas import Jpas
from controller.policies.las import Las
from controller.policies.sebf import Sebf
from controller.policies.tensorlights_rr import TensorLightsRr
from simulator.jobs import Compute, SimJob
from tests.support.simulator.small_cases import SECOND, Spy, coflow, ends, run, transfer


def test_without_a_period_it_plans_when_a_job_comes_or_ends() -> None:
    spy = Spy()
    jobs = [
        coflow("1", ("a", "b", 1)),
        coflow("2", ("c", "d", 3), arrival=0.5),
        coflow("3", ("e", "f", 1), arrival=3.5),
    ]
    outcome = run(*jobs, policy=spy)
    # 2 and 3 end... 2 at 3.5, when 3 comes: one plan for both.
    assert spy.times == pytest.approx([0, 0.5, 1, 3.5])
    assert outcome.plans == 4


def test_with_a_period_it_plans_then_too() -> None:
    spy = Spy()
    run(coflow("1", ("a", "b", 3)), coflow("2", ("c", "d", 1), arrival=0.5), policy=spy, period=1.0)
    assert spy.times == pytest.approx([0, 0.5, 1, 1.5, 2])
    assert {snapshot.period for snapshot in spy.shown} == {1.0}


def test_las_moves_a_coflow_down_when_it_has_had_its_share() -> None:
    policy = Las(first_seconds=1.0)
    jobs = [coflow("1", ("a", "b", 4)), coflow("2", ("a", "b", 1), arrival=3.0)]
    assert ends(*jobs, policy=policy, period=0.5) == pytest.approx([5, 4])
    # It had the port for 3 s before 2 came, so it is in another band then, period or not.
    assert ends(*jobs, policy=policy) == pytest.approx([5, 4])
    together = [coflow("1", ("a", "b", 4)), coflow("2", ("a", "b", 1.2), arrival=0.5)]
    # Both share the first band; at 1.5 s 1 has had 1 s and makes way; 2 has had 0.5 and passes 1 s at 2 s.
    assert ends(*together, policy=policy, period=0.5)[1] == pytest.approx(2.4)
    assert ends(*together, policy=policy)[1] == pytest.approx(2.4, abs=0.05)


def test_a_delay_serves_a_new_job_last_until_the_plan_is_in_force() -> None:
    jobs = [coflow("1", ("a", "b", 4)), coflow("2", ("a", "c", 1), arrival=1.0)]
    assert ends(*jobs, policy=Sebf()) == pytest.approx([5, 2])
    # Both share for the half second until 2 goes first, with 0.75 left.
    assert ends(*jobs, policy=Sebf(), delay=0.5) == pytest.approx([5, 2.25])
    # A plan takes in what happens meanwhile.
    both = [*jobs, coflow("3", ("a", "d", 0.5), arrival=1.2)]
    spy = Spy()
    run(*both, policy=spy, delay=0.5)
    assert [tuple(job.id for job in shown.jobs) for shown in spy.shown][:2] == [("1",), ("1", "2", "3")]
    assert spy.times[:2] == pytest.approx([0.5, 1.5])
    assert spy.shown[0].jobs[0].sent_bytes == pytest.approx({"a": 0.5 * SECOND}), "what it sent before it was seen"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "policy", [Las(first_seconds=0.5), Jpas(), TensorLightsRr(rotate_seconds=2.0)], ids=lambda policy: policy.name
)
def test_with_a_delay_and_no_period_an_order_whose_time_is_up_is_followed_by_another(policy) -> None:
    fan = SimJob(
        "1", lanes=((Compute(0.2), transfer(("a", "b", 0.3), ("a", "c", 0.3))),), iterations=10,
        curve=tuple(1 - 1 / (k + 1) for k in range(1, 11)),
    )  # fmt: skip
    outcome = run(fan, replace(fan, id="2"), policy=policy, delay=0.3)
    # a's port carries 12 s of bytes, and is idle at most while both compute.
    assert 12 < max(job.end for job in outcome.jobs.values()) < 16
    # One plan when both come, one when the first has ended; the others by the policy's own time.
    assert outcome.plans > 2


@pytest.mark.parametrize("direction", ["max", "min"])
def test_a_crossed_target_makes_a_plan_at_once_and_once(direction) -> None:
    rising = (0.1, 0.5, 0.6, 0.4, 0.7)
    curve = rising if direction == "max" else tuple(1 - value for value in rising)
    job = SimJob(
        id="1", lanes=((Compute(1.0),),), iterations=5, curve=curve, metric=Metric("m", direction), arrival=0.25
    )
    spy = Spy(watch=0.5)
    run(job, policy=spy, period=100.0, classes=2)
    assert spy.times == pytest.approx([0, 2])


def test_classes_are_cut_as_the_planner_cuts_them() -> None:
    # 0 is on ports of its own; 1 and 2 share theirs.
    jobs = [coflow("0", ("a", "b", 1)), coflow("1", ("c", "d", 1)), coflow("2", ("c", "d", 1))]
    assert ends(*jobs, classes=2) == pytest.approx([1, 1, 2])
    assert ends(*jobs, classes=1) == pytest.approx([1, 2, 2])
    # top joins 1 and 2 until 0 has ended; then 1, with a half left, goes first.
    assert ends(*jobs, classes=2, assign="top") == pytest.approx([1, 1.5, 2])
