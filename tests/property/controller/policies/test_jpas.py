"""JPAS: the early before the late, targets passed, new and silent jobs, low confidence, the starvation bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Demand, Host, Job, Progress, Snapshot
from controller.policies.jpas import Jpas

HOSTS = {f"h{i}": Host(f"h{i}", 1e9, 1e9) for i in range(1, 5)}
STEP = 12.5e6  # bytes that take 0.1 s of a 1 Gbit/s port


def curve(n: int, tau: float, top: float = 0.9) -> np.ndarray:
    return top * (1 - np.exp(-np.arange(1, n + 1) / tau))


def job(name: str, values=(), total: float | None = 200.0, step: float = STEP, **more) -> Job:
    progress = tuple(Progress(float(k), float(k), float(v)) for k, v in enumerate(values, 1))
    left = (total or 200.0) - len(progress)
    more = {"iterations_left": max(left, 0.0), "iterations_total": total, **more}
    return Job(id=name, demand=(Demand("h1", "h2", step),), progress=progress, **more)


def order(policy: Jpas, *jobs: Job, now: float = 0.0, previous=None):
    return policy.order(Snapshot(now=now, hosts=HOSTS, jobs=jobs, period=1.0), previous)


def names(ordering) -> list[str]:
    return [name for band in ordering.bands for name in band]


@pytest.mark.parametrize("variant", ["index", "median"])
def test_the_job_nearer_to_its_target_goes_first_and_one_past_it_last(variant) -> None:
    near, far = job("near", curve(200, 10)[:15]), job("far", curve(200, 60)[:30])
    past = job("past", curve(200, 10)[:120])
    ordering = order(Jpas(variant=variant), past, far, near)
    assert names(ordering) == ["near", "far", "past"]
    assert "90 % of convergence" in ordering.reasons["near"]
    assert "past 95 %" in ordering.reasons["past"]
    assert set(ordering.watch) == {"near", "far"}


def test_bytes_count_not_iterations_alone() -> None:
    heavy = job("heavy", curve(200, 10)[:15], step=100 * STEP)
    light = job("light", curve(200, 30)[:15])
    assert names(order(Jpas(), heavy, light)) == ["light", "heavy"]


def test_a_job_without_history_goes_by_the_bytes_and_the_length_that_it_declares() -> None:
    # As ``trainyard predict --registration`` declares them.
    heavy, light, long = job("heavy", step=100 * STEP), job("light"), job("long", total=20_000.0)
    for jobs in ((heavy, light), (light, heavy)):
        assert names(order(Jpas(), *jobs)) == ["light", "heavy"]
    for jobs in ((long, light), (light, long)):
        assert names(order(Jpas(), *jobs)) == ["light", "long"]


def test_a_new_job_of_unknown_length_is_first_until_its_service_is_used() -> None:
    near = job("near", curve(200, 10)[:20])
    fresh = job("new", [0.1], total=None)
    used = job("new", [0.1], total=None, sent_bytes={"h1": 1000 * STEP})
    policy = Jpas(new_job_seconds=2.0)
    assert names(order(policy, near, fresh))[0] == "new"
    ordering = order(policy, near, used)
    assert names(ordering)[0] == "near"
    assert "has used 1 min 40 s of its busiest port (near, before it: " in ordering.reasons["new"]


def test_a_job_that_never_reports_falls_behind_as_it_sends() -> None:
    near = job("near", curve(200, 10)[:15])
    rank, reasons = [], set()
    for sent in (0, 30, 60, 120, 190):
        ordering = order(Jpas(), near, job("silent", sent_bytes={"h1": sent * STEP}))
        rank.append(names(ordering).index("silent"))
        reasons.add(ordering.reasons["silent"])
    assert rank == sorted(rank)
    assert rank[-1] == 1
    assert len(reasons) == len(rank)


@pytest.mark.parametrize("total", [None, 20.0])
def test_a_job_that_nobody_counts_and_that_never_reports_falls_behind_with_time(total: float | None) -> None:
    far, silent = job("far", curve(200, 60)[:15]), job("silent", total=total, arrival=14.0, is_counted=False)
    rank = [names(order(Jpas(), far, silent, now=now)).index("silent") for now in (14.0, 15.0, 30.0, 100.0, 300.0)]
    assert rank == sorted(rank)
    assert (rank[0], rank[-1]) == (0, 1), "first as a new one, and not for good"


def test_low_confidence_means_attained_service() -> None:
    noisy = job("noisy", curve(200, 60)[:12], total=None)
    assert "uncertain" in order(Jpas(uncertain=0.01), noisy).reasons["noisy"]
    assert "uncertain" not in order(Jpas(uncertain=1e9), noisy).reasons["noisy"]


@pytest.mark.parametrize(
    ("options", "values", "total"),
    [
        ({"variant": "attained"}, curve(200, 10)[:15], 200.0),
        ({"uncertain": 0.01}, curve(200, 60)[:12], None),
        ({"uncertain": 0.01, "variant": "median"}, curve(200, 60)[:12], 200.0),
        ({}, [], None),
    ],
    ids=["by service alone", "length unknown", "uncertain in a variant", "silent"],
)
def test_whoever_goes_by_service_goes_by_what_was_measured(options, values, total) -> None:
    measured = job("a", values, total, sent_bytes={"h1": 1000 * STEP})
    assert (
        "has used 1 min 40 s of its busiest port (lowest goes first)" in order(Jpas(**options), measured).reasons["a"]
    )


def test_a_passed_target_stays_passed_over_one_bad_report_but_not_over_a_denial() -> None:
    rng = np.random.default_rng(1)
    values = curve(200, 12) + rng.normal(0, 0.01, 200)
    policy = Jpas(variant="median")
    first = order(policy, job("a", values[:60]))
    assert first.memory["passed:a"] >= 1
    again = order(policy, job("a", [*values[:60], 0.2]), previous=first)
    assert again.memory["passed:a"] >= 1
    rising = np.concatenate((values[:60], values[59] + 0.004 * np.arange(100)))
    assert "passed:a" not in order(policy, job("a", rising, total=400.0), previous=again).memory


@pytest.mark.parametrize("variant", ["index", "median", "gain", "remaining", "attained"])
def test_every_variant_orders_every_kind_of_job(variant) -> None:
    jobs = [
        job("near", curve(200, 10)[:15]),
        job("past", curve(200, 5)[:190]),
        job("new"),
        job("endless", curve(50, 10), total=None),
        Job(id="idle"),
        job("done", curve(200, 10), iterations_left=0.0),
        job("flat", [0.5] * 30),
        job("falling", curve(100, 20)[::-1]),
    ]
    ordering = order(Jpas(variant=variant), *jobs)
    assert sorted(names(ordering)) == sorted(j.id for j in jobs)
    assert all(ordering.reasons[j.id] for j in jobs)
    assert ordering == order(Jpas(variant=variant), *jobs)


def test_weight_moves_a_job_forward() -> None:
    a, b = job("a", curve(200, 10)[:15]), job("b", curve(200, 14)[:15])
    assert names(order(Jpas(), a, b)) == ["a", "b"]
    heavy = job("b", curve(200, 14)[:15], weight=50.0)
    assert names(order(Jpas(), a, heavy)) == ["b", "a"]


@settings(max_examples=15, deadline=None)
@given(n=st.integers(2, 5), periods=st.integers(1, 4), data=st.data())
def test_every_job_with_demand_holds_the_first_class_once_in_n_w_periods(n, periods, data) -> None:
    taus = [data.draw(st.floats(5, 80)) for _ in range(n)]
    policy, previous = Jpas(ageing_periods=periods), None
    held = {f"j{i}": [0.0] for i in range(n)}
    length = 3 * n * periods + 2
    for tick in range(length):
        jobs = [job(f"j{i}", curve(400, tau)[: tick + i], total=400.0) for i, tau in enumerate(taus)]
        previous = order(policy, *jobs, now=float(tick), previous=previous)
        held[names(previous)[0]].append(float(tick))
    for moments in held.values():
        assert max(b - a for a, b in zip(moments, [*moments[1:], length - 1.0], strict=True)) <= n * periods + 1
