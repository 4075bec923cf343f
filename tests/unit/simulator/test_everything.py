"""Every policy runs on every workload: the switches exact, and as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.policies.registry import available
from simulator.engine import Limits
from simulator.sweep.sweep import Task, run_task
from simulator.workloads.catalogue import NAMED, Source, Trace
from simulator.workloads.training import Training
from tests.support.paths import GOLDEN

SIX = GOLDEN / "six.txt"
REAL = Limits(classes=3, period=1.0, delay=0.02)
OPTIONS = {"sincronia": {"online": True}}


def small(name: str) -> Source:
    if name == "trace":
        return Trace("six.txt", SIX.read_text())
    mix, _ = NAMED[name]
    if isinstance(mix, Training):
        return replace(mix, hosts=6, jobs=3, workers=(2, 3), iterations=(3, 5))
    return replace(mix, hosts=6, jobs=1, workers=(2, 2), shortest=2, longest=8)


@pytest.mark.parametrize("policy", sorted(available()))
@pytest.mark.parametrize("name", ["trace", *NAMED])
def test_every_policy_runs_on_every_workload(policy: str, name: str) -> None:
    source = small(name)
    for options in ({}, *([OPTIONS[policy]] if policy in OPTIONS else [])):
        for limits in (Limits(), REAL):
            run = run_task(Task(source, policy, options, limits)).measures
            assert run.makespan_seconds > 0
            assert run.plans >= 2
            waits = [*run.cct.values(), *run.jct.values()]
            assert waits
            assert min(waits) >= 0
            # Workers that run apart may even gain by being held up.
            assert min(run.slowdown.values()) >= (1 - 1e-6 if "sp" not in name else 0.5)
