"""JPAS with declared targets: judged by them, crossed once, unreachable ones said, and jobs that have diverged last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.curves import fit
from controller.model import Demand, Host, Job, Metric, Ordering, Progress, Snapshot
from controller.policies.jpas import Jpas
from controller.policies.parts import aims
from simulator.reports.targets import declared_iteration

HOSTS = {f"h{i}": Host(f"h{i}", 1e9, 1e9) for i in range(1, 5)}
STEP = 12.5e6  # bytes that take 0.1 s of a 1 Gbit/s port
TOTAL = 200.0
VARIANTS = ("index", "median", "gain", "remaining", "attained")


def curve(n: int, tau: float = 20.0, top: float = 0.9) -> list[float]:
    values: list[float] = (top * (1 - np.exp(-np.arange(1, n + 1) / tau))).tolist()
    return values


def job(name: str, values: list[float], **more: object) -> Job:
    progress = tuple(Progress(float(k), float(k), v) for k, v in enumerate(values, 1))
    fields: dict[str, object] = {"iterations_left": TOTAL - len(progress), "iterations_total": TOTAL}
    return Job(id=name, demand=(Demand("h1", "h2", STEP),), progress=progress, **(fields | more))  # type: ignore[arg-type]


def order(*jobs: Job, policy: Jpas | None = None, previous: Ordering | None = None, now: float = 0.0) -> Ordering:
    return (policy or Jpas()).order(Snapshot(now=now, hosts=HOSTS, jobs=jobs, period=1.0), previous)


def names(ordering: Ordering) -> list[str]:
    return [name for band in ordering.bands for name in band]


@pytest.mark.parametrize("variant", ["index", "median", "gain"])
def test_the_nearer_target_goes_first_and_a_crossed_one_last(variant: str) -> None:
    seen = curve(30)
    near, far, past = (job(name, seen, target=value) for name, value in (("near", 0.75), ("far", 0.88), ("past", 0.6)))
    ordering = order(past, far, near, policy=Jpas(variant=variant))
    assert names(ordering) == ["near", "far", "past"]
    assert "its target (accuracy 0.75) in " in ordering.reasons["near"]
    assert "past its target (accuracy 0.6), crossed at iteration " in ordering.reasons["past"]
    assert ordering.watch == {"near": 0.75, "far": 0.88}


def test_the_watch_is_the_target_to_the_digit() -> None:
    for target in (0.812367, 0.1 + 0.2 + 0.5, 0.7):
        assert order(job("a", curve(10), target=target)).watch == {"a": target}


@pytest.mark.parametrize("total", [TOTAL, None])
def test_the_predicted_iteration_is_that_of_the_target(total: float | None) -> None:
    run = curve(200)
    for target in (0.75, 0.8, 0.85):
        truth = declared_iteration(run, target)
        assert truth is not None
        fitted = fit.fit(
            [Progress(float(k), 0.0, v) for k, v in enumerate(run[:30], 1)], Metric(), total, target=target
        )
        assert fitted is not None
        assert fitted.declared is not None
        assert fitted.declared.iteration.median == pytest.approx(truth, rel=0.3)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=90),
    target=st.floats(0.01, 1.2),
    direction=st.sampled_from(["max", "min"]),
    total=st.sampled_from([None, 100.0]),
)
def test_a_target_is_crossed_where_the_measurement_says_so(
    values: list[float], target: float, direction: str, total: float | None
) -> None:
    metric = Metric("m", direction)  # type: ignore[arg-type]
    fitted = fit.fit([Progress(float(k), 0.0, v) for k, v in enumerate(values, 1)], metric, total, target=target)
    assert fitted is not None
    assert fitted.declared is not None
    assert fitted.declared.crossed == declared_iteration(values, target, metric.direction)
    iteration = fitted.declared.iteration
    assert iteration.low <= iteration.median <= iteration.high
    assert 0.0 <= fitted.declared.reach <= 1.0
    assert fitted.declared.rate >= 0.0
    assert (fitted.declared.crossed is not None) <= (fitted.declared.limit is None)


def test_a_declared_target_changes_no_fit_of_its_own_90_percent_and_no_other_job() -> None:
    progress = [Progress(float(k), 0.0, v) for k, v in enumerate(curve(40), 1)]
    plain = fit.History(progress, Metric(), TOTAL)
    alone, beside, aimed = (
        fit.fit_many([plain])[0],
        *fit.fit_many([plain, plain._replace(target=0.8)]),
    )
    assert alone == beside
    assert aimed is not None
    assert aimed._replace(declared=None) == alone


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_changed_target_buys_no_second_turn(variant: str) -> None:
    policy = Jpas(variant=variant)
    crossed, other = job("a", curve(40), target=0.6), job("b", curve(40), target=0.86)
    first = order(crossed, other, policy=policy)
    for target in (0.89, None, 0.2):
        now = order(replace(crossed, target=target), other, policy=policy, previous=first)
        assert names(now) == names(first), variant
        assert "a" not in now.watch
        if variant in ("index", "median", "gain"):
            assert "buys no second turn" in now.reasons["a"]
            assert ("taken back" if target is None else f"changed to {target:.4g}") in now.reasons["a"]
        # It is remembered from plan to plan, also where the reports no longer show it.
        thinned = replace(crossed, target=target, progress=crossed.progress[::20])
        later = order(thinned, other, policy=policy, previous=now)
        assert "a" not in later.watch
    fresh = order(replace(crossed, target=0.89), other, policy=policy)
    assert variant not in ("index", "median", "gain") or fresh.watch["a"] == 0.89, "without the memory it would have"


def test_a_target_may_change_until_it_is_crossed_and_the_next_run_has_its_own() -> None:
    before = order(job("a", curve(10), target=0.8))
    raised = order(job("a", curve(12), target=0.85), previous=before)
    assert raised.watch == {"a": 0.85}
    past = order(job("a", curve(80), target=0.85), previous=raised)
    assert "a" not in past.watch
    again = order(job("a", curve(10), target=0.85, arrival=500.0), previous=past, now=500.0)
    assert again.watch == {"a": 0.85}
    resubmitted = order(job("a", curve(90), target=0.89, arrival=500.0), previous=past, now=500.0)
    assert "a" not in resubmitted.watch, "another arrival of the same run is no other run"
    renamed = order(job("a", curve(5), target=0.89), previous=past)
    assert "a" not in renamed.watch, "nor is another history of the same arrival"
    assert "crossed" in order(job("a", [], target=0.89), previous=past).reasons["a"]


@pytest.mark.parametrize(
    ("metric", "values", "target", "words"),
    [
        (Metric(), curve(10), 92.0, "is beyond the best value that it can have, 1"),
        (Metric(), [100 * value for value in curve(10)], 101.0, "is beyond the best value that it can have, 100"),
        (Metric("loss", "min"), [1.0 - value for value in curve(10)], -0.1, "is beyond the best value"),
        (Metric(), curve(120, top=0.6), 0.95, "is out of reach, for the run converges to 0.6"),
        (Metric("reward"), [1000 * value for value in curve(120)], 1200.0, "is out of reach"),
    ],
)
def test_an_unreachable_target_is_said_and_changes_no_place(
    metric: Metric, values: list[float], target: float, words: str
) -> None:
    plain, other = job("a", values, metric=metric), job("b", curve(60, tau=40))
    ordering = order(replace(plain, target=target), other)
    without = order(plain, other)
    assert words in ordering.reasons["a"]
    assert f"its target, {metric.name} {target:.4g}, " in ordering.reasons["a"]
    assert "so its own 90 % of convergence counts instead" in ordering.reasons["a"]
    remembered = {key: value for key, value in ordering.memory.items() if key != "declared:a"}
    assert (ordering.bands, ordering.watch, remembered) == (without.bands, without.watch, without.memory)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_target_that_is_declared_after_it_was_crossed_buys_no_turn(variant: str) -> None:
    policy = Jpas(variant=variant)
    plain, other = job("a", curve(150)), job("b", curve(60, tau=40))
    before = order(plain, other, policy=policy)
    late = order(replace(plain, target=0.6), other, policy=policy, previous=before)
    assert (late.bands, late.watch) == (before.bands, before.watch)
    assert (late.memory[f"kept:{plain.id}"], late.memory.get("crossed:a")) == (before.memory["kept:a"], None)
    if variant in ("index", "median", "gain"):
        assert "was declared after it was crossed at iteration 23, so its own 90 %" in late.reasons["a"]
    later = order(replace(job("a", curve(151)), target=0.6), other, policy=policy, previous=late)
    assert "crossed:a" not in later.memory, "it stays so"


def test_a_target_that_is_declared_before_it_is_crossed_counts() -> None:
    plain = job("a", curve(10))
    before = order(plain)
    declared = order(replace(plain, target=0.6), previous=before)
    assert declared.watch == {"a": 0.6}
    crossed = order(job("a", curve(40), target=0.6), previous=declared)
    assert crossed.memory["crossed:a"] == 0.6
    assert "past its target (accuracy 0.6), crossed at iteration " in crossed.reasons["a"]


def test_a_target_that_may_be_reached_is_not_called_out_of_reach() -> None:
    """At 90 % and at 99 % of the gap, over the whole run, of curves that are none of the fit's own families."""
    k = np.arange(1, 201)
    for run in (0.9 / (1 + np.exp(-(k - 60) / 15)), 0.9 * (1 - (1 + k) ** -0.6), 0.9 * np.log1p(k) / np.log(201)):
        for share in (0.9, 0.99):
            target = share * float(np.median(run[-20:]))
            for seen in range(3, 200, 7):
                reason = order(job("a", run[:seen].tolist(), target=target)).reasons["a"]
                assert "out of reach" not in reason, (share, seen, reason)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_job_that_has_diverged_goes_behind_all_others_by_its_service(variant: str) -> None:
    policy = Jpas(variant=variant)
    healthy = job("late", curve(190))
    fewer, more = (job(f"bad{n}", curve(n), diverged=True, target=0.89, weight=9.0) for n in (5, 50))
    ordering = order(more, healthy, fewer, policy=policy)
    assert names(ordering) == ["late", "bad5", "bad50"]
    assert (
        "has used 5 s of its busiest port, divided by its weight 9 that is 556 ms (bad5, before it: 55.6 ms; lowest "
        "goes first); it diverged" in ordering.reasons["bad50"]
    )
    assert set(ordering.watch) <= {"late"}


def test_what_is_remembered_of_a_crossing_is_read_again() -> None:
    crossed = {"a": aims.Crossing(0.8, 31.0, 5.0)}
    memory = aims.to_memory(crossed)
    assert aims.crossings([job("a", curve(40), arrival=5.0)], memory) == crossed
    assert aims.crossings([job("b", curve(40))], memory) == {}
