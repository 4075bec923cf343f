"""Sweeps: the same answers from this process, from several, and from a Ray cluster."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.policies.registry import PolicyError
from simulator.errors import InputError
from simulator.sweep import ray_sweep
from simulator.sweep.sweep import Run, SweepError, Task, run_all
from simulator.workloads.catalogue import Trace
from simulator.workloads.training import Training
from simulator.workloads.tuning import Tuning

MIX = Training(hosts=6, jobs=2, workers=(2, 2), iterations=(4, 4))
TASKS = [
    Task(replace(MIX, seed=seed), policy, load=0.5, seed=seed) for policy in ("fair", "fifo") for seed in (1, 2)
] + [Task(Trace("t", "2 1\n1 0 1 0 1 1:8\n"), "sebf"), Task(Tuning("asha", hosts=6, jobs=1, longest=18), "beamer")]


def facts(runs: Sequence[Run]) -> list[Any]:
    return [
        (
            run.task,
            run.measures.policy,
            run.measures.jct,
            run.measures.cct,
            run.measures.sct,
            run.measures.makespan_seconds,
        )
        for run in runs
    ]


def test_several_processes_say_what_one_says_and_tell_how_far_they_are() -> None:
    told: list[list[float]] = []
    here = run_all(TASKS, processes=1)
    there = run_all(TASKS, processes=2, progress=lambda shares: told.append(list(shares)))
    assert facts(there) == facts(here)
    assert told[-1] == [1.0] * len(TASKS)
    assert all(0 <= share <= 1 for shares in told for share in shares)


def test_a_task_that_fails_in_a_process_ends_the_sweep() -> None:
    with pytest.raises(PolicyError, match="unknown policy"):
        run_all([*TASKS[:1], Task(MIX, "none")], processes=2)


def test_progress_of_one_process_never_falls() -> None:
    told: list[float] = []
    run_all(TASKS[:2], processes=1, progress=lambda shares: told.append(sum(shares)))
    assert told == sorted(told)
    assert told[-1] == 2.0


def test_a_timeline_is_of_the_busiest_port() -> None:
    text = "3 2\n1 0 1 0 1 1:10\n2 0 1 0 1 2:30\n"
    (run,) = run_all([Task(Trace("t", text), "fifo", timeline=True)], processes=1)
    found = run.measures.timeline
    assert found is not None
    assert (found.port, found.jobs) == ("0 egress", ("1", "2"))
    sent = (found.rates_bps * np.diff(found.edges)).sum(axis=1) / 8
    assert sent == pytest.approx([10 * 2**20, 30 * 2**20])


@pytest.mark.filterwarnings("ignore")
def test_a_local_ray_cluster_says_what_one_process_says() -> None:
    told: list[float] = []
    found = ray_sweep.run_all(TASKS, address="local", progress=lambda shares: told.append(sum(shares)))
    assert facts(found) == facts(run_all(TASKS, processes=1))
    assert told[-1] == len(TASKS)


@pytest.mark.filterwarnings("ignore")
def test_a_task_that_fails_on_a_ray_cluster_ends_the_sweep_with_its_own_error() -> None:
    with pytest.raises(PolicyError, match="unknown policy"):
        ray_sweep.run_all([Task(MIX, "none")], address="local")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_where_no_cluster_answers_the_address_is_named(address: str) -> None:
    with pytest.raises(SweepError, match=f"--ray {address}: no Ray cluster answers there"):
        ray_sweep.run_all(TASKS[:1], address=address)


@pytest.mark.parametrize("address", ["127.0.0.1:port", "127.0.0.1:99999", "cluster:"])
def test_what_is_no_address_is_wrong_input(address: str) -> None:
    with pytest.raises(InputError, match=f"--ray {address}: it must be local, auto, or HOST:PORT"):
        ray_sweep.run_all(TASKS[:1], address=address)


def test_without_ray_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "ray":
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SweepError, match=r"pip install 'trainyard\[ray\]'"):
        ray_sweep.run_all(TASKS[:1], address="local")
