"""The starvation bound of ageing: with n jobs each holds the first class once in n W periods."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Demand, Job
from controller.policies.parts.ageing import age


def simulate(orders, periods: int, period: float, extra) -> list[tuple[float, str]]:
    """Plans once a period and sometimes between; yields who was first when. The base order is the adversary's."""
    memory: dict[str, float] = {}
    firsts = []
    now = 0.0
    for tick, order in enumerate(orders):
        jobs = {job: Job(id=job, demand=(Demand("a", "b", 1.0),)) for job in order}
        for moment in (now, now + period / 2) if tick in extra else (now,):
            aged = age(order, jobs, memory, now=moment, period=period, periods=periods)
            assert sorted(aged.order) == sorted(order)
            memory = dict(aged.memory)
            firsts.append((moment, aged.order[0]))
        now += period
    return firsts


@settings(max_examples=100, deadline=None)
@given(n=st.integers(1, 6), periods=st.integers(1, 5), period=st.floats(0.1, 10), data=st.data())
def test_every_job_holds_the_first_class_once_in_n_w_periods(n, periods, period, data) -> None:
    names = [f"j{i}" for i in range(n)]
    length = 3 * n * periods + 2
    orders = [data.draw(st.permutations(names)) for _ in range(length)]
    if data.draw(st.booleans()):
        orders = [orders[0]] * length
    extra = data.draw(st.sets(st.integers(0, length - 1)))
    firsts = simulate(orders, periods, period, extra)
    window = n * periods * period + period * 1.01
    for name in names:
        held = [0.0] + [moment for moment, first in firsts if first == name] + [(length - 1) * period]
        assert max(b - a for a, b in pairwise(held)) <= window


def test_a_job_without_demand_is_never_promoted() -> None:
    jobs = {"a": Job(id="a", demand=(Demand("x", "y", 1.0),)), "b": Job(id="b")}
    memory: dict[str, float] = {}
    for tick in range(20):
        aged = age(["a", "b"], jobs, memory, now=float(tick), period=1.0, periods=2)
        memory = dict(aged.memory)
        assert aged.order == ("a", "b")


def test_a_promotion_lasts_one_period_also_over_plans_in_between() -> None:
    jobs = {name: Job(id=name, demand=(Demand("x", "y", 1.0),)) for name in "ab"}
    first = age("ab", jobs, {}, now=0.0, period=1.0, periods=2)
    turn = age("ab", jobs, first.memory, now=2.0, period=1.0, periods=2)
    assert turn.promoted == "b"
    between = age("ab", jobs, turn.memory, now=2.4, period=1.0, periods=2)
    assert between.order == ("b", "a")
    after = age("ab", jobs, between.memory, now=3.0, period=1.0, periods=2)
    assert after.order == ("a", "b")
    assert after.promoted is None
