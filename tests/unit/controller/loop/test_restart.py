"""The same plan after a restart, where the order comes of what jobs have told of their training."""

from __future__ import annotations

import time
from pathlib import Path

import eventlet
import pytest

from controller.curves import remembered
from controller.wire import HostReport, JobSpec
from evaluation.bench.support.waiting import wait_until
from evaluation.curves import drawn_curves
from simulator.reports.targets import target_iteration
from tests.support.controller.yard import Yard


def replan(yard: Yard) -> None:
    """Until there is a plan of all that is known now."""
    for _ in range(2):  # the first may have been under way before
        plans = yard.plans()
        yard.loop.trigger("switch", time.monotonic())
        wait_until(lambda plans=plans: yard.plans() > plans, seconds=20, sleep=eventlet.sleep)


def test_a_restart_amid_training_makes_the_same_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = [(run.accuracy, target_iteration(run.accuracy, 0.9)) for run in drawn_curves.load()]
    # Each told until two thirds of its way to 90 % of convergence.
    runs = [(run, 2 * target // 3) for run, target in known if target is not None and target >= 15][:8]
    assert len(runs) == 8
    before = Yard(tmp_path / "j.db", policy="jpas").start()
    for i, (run, _) in enumerate(runs):
        body = {
            "tasks": [{"role": "ps", "host": "h1", "port": 5000 + i}, {"role": "worker", "host": "h2"}],
            "demand": [{"src": "h2", "dst": "h1", "bytes": 1e6 * (1 + i % 3)}],
            "iterations": len(run),
        }
        before.registry.put_job(f"j{i}", JobSpec.model_validate(body), time.monotonic())
    replan(before)
    assert before.loop.plan is not None
    unknown, began = before.loop.plan.ordering.bands, time.time() - 1000
    for seq in (1, 2, 3):
        told = [
            {
                "job": f"j{i}",
                "points": [
                    {"iteration": k, "time": began + k, "metric": run[k - 1]}
                    for k in range(stop * (seq - 1) // 3 + 1, stop * seq // 3 + 1)
                ],
            }
            for i, (run, stop) in enumerate(runs)
        ]
        report = HostReport.model_validate({"session": "s", "seq": seq, "sent_at": time.time(), "jobs": told})
        assert not before.registry.report("h1", report, time.monotonic()).refused
        replan(before)
    last, jobs = before.loop.plan, before.loop.snapshot.jobs
    assert len(set(last.classes.values())) == 7
    assert last.ordering.bands != unknown
    assert all("% of convergence" in reason for reason in last.ordering.reasons.values()), last.ordering.reasons
    before.stop()
    # No process remembers the fits of the one before it.
    monkeypatch.setattr(remembered, "_of_this_process", remembered.Remembered())
    after = Yard(tmp_path / "j.db", policy="jpas").start()
    try:
        again = after.loop.plan
        assert again.made_at > last.made_at
        assert after.loop.snapshot.jobs == jobs
        assert again.classes == last.classes
        assert again.ordering.bands == last.ordering.bands
        assert again.ordering.reasons == last.ordering.reasons
        kept, known_then = (
            {key: value for key, value in its.ordering.memory.items() if not key.startswith("ageing:")}
            for its in (again, last)
        )
        assert kept == known_then
    finally:
        after.stop()
