"""What one run means, and what many say together."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from controller.model import Demand, Direction, Host, Metric, Port
from simulator.jobs import Compute, SimJob, Transfer
from simulator.network import Hose
from simulator.outcome import JobOutcome
from simulator.reports.document import document, dumps
from simulator.reports.measures import Facts, is_coflow, measure
from simulator.reports.summary import summarise, versus
from simulator.sweep.facts import bottleneck_seconds, facts_of, solo_seconds
from tests.support.simulator.sim_runs import (
    HOSTS,
    NETWORK,
    SEND,
    coflow,
    coflow_run,
    outcome,
    results,
    training_job,
    training_run,
)

CONTRACT = {
    "coflows", "mean_cct_seconds", "p50_cct_seconds", "p95_cct_seconds", "p99_cct_seconds", "makespan_seconds",
    "wall_seconds", "cpu_seconds", "mean_sct_seconds", "mean_t90_seconds", "mean_jct_seconds",
}  # fmt: skip


def test_a_coflow_has_a_cct_and_no_jct() -> None:
    run = coflow_run("p", {"1": 1.5, "2": 3.5})
    assert run.cct == {"1": 1.0, "2": 3.0}
    assert (dict(run.jct), dict(run.t90), dict(run.sct), len(run.iteration_seconds)) == ({}, {}, {}, 0)
    assert run.makespan_seconds == 3.0
    assert run.slowdown == {"1": 1.0, "2": 3.0}


def test_a_training_job_has_a_coflow_an_iteration() -> None:
    run = training_run("p", 2.0)
    assert run.jct == {"j": 20.0, "k": 20.0}
    assert run.ccts == pytest.approx([1.5] * 20), "an iteration's time less what it computes"
    assert run.iteration_seconds == pytest.approx([2.0] * 20)
    assert (run.t90, run.t95) == ({"j": 10.0, "k": None}, {"j": 12.0, "k": None})
    assert run.slowdown == {"j": pytest.approx(20 / 15), "k": pytest.approx(20 / 15)}
    assert run.link_use == pytest.approx([4e6 * 8 / (8e6 * 20)])


def test_workers_that_run_apart_have_no_coflow() -> None:
    job = SimJob("j", lanes=((Compute(1.0), SEND), (Compute(1.0), SEND)), iterations=2, staleness=None)
    found = JobOutcome("j", 0.0, 4.0, 4e6, np.array([2.0, 4.0]))
    run = measure([job], NETWORK, outcome("p", [found]), {"j": Facts(4.0, {})})
    assert (dict(run.cct), len(run.ccts), run.jct) == ({}, 0, {"j": 4.0})


def test_a_stage_lasts_from_its_first_arrival_to_its_last_end() -> None:
    jobs = [SimJob(name, lanes=((SEND,),), iterations=2, stage="s") for name in ("x", "y")]
    found = [
        JobOutcome("x", 1.0, 5.0, 1.0, np.array([2.0, 5.0])), JobOutcome("y", 2.0, 9.0, 1.0, np.array([3.0, 9.0])),
    ]  # fmt: skip
    run = measure(jobs, NETWORK, outcome("p", found), {name: Facts(0.0, {}) for name in ("x", "y")})
    assert run.sct == {"s": 8.0}
    assert dict(run.slowdown) == {}, "nothing is slow beside a job that takes no time"


def test_what_a_job_is() -> None:
    assert is_coflow(coflow("1"))
    assert not is_coflow(training_job("j"))
    assert not is_coflow(SimJob("x", lanes=((SEND,),), stage="s"))


def test_alone_a_step_takes_as_long_as_its_busiest_port() -> None:
    network = Hose({"a": Host("a", 8e6, 16e6), "b": Host("b", 8e6, 8e6), "c": Host("c", 4e6, 8e6)})
    assert bottleneck_seconds(Transfer((Demand("a", "b", 1e6), Demand("a", "c", 1e6))), network) == 2.0
    assert bottleneck_seconds(Transfer((Demand("a", "b", 3e6), Demand("a", "c", 1e5))), network) == 3.0
    assert bottleneck_seconds(Transfer((Demand("a", "a", 1e6),)), network) == 1.0
    assert bottleneck_seconds(Transfer(()), network) == 0.0
    assert solo_seconds(training_job("j"), HOSTS, NETWORK) == 15.0


def test_lanes_alone_share_the_network_among_themselves() -> None:
    lane = (Compute(1.0), SEND)
    job = SimJob("j", lanes=(lane, lane), iterations=3, staleness=0)
    assert solo_seconds(job, HOSTS, NETWORK) == pytest.approx(9.0), "both send at once: 2 s for 1 MB each at 8 Mbit/s"


def test_facts_know_the_targets_of_jobs_that_converge() -> None:
    facts = facts_of(training_job("j"), HOSTS, NETWORK)
    assert facts.targets == {"t90": 5, "t95": 6}, "running median of three: 0.9 and 0.95 of the last one's 1.0"
    assert facts_of(training_job("j", curve=()), HOSTS, NETWORK).targets == {}


@pytest.mark.parametrize(
    ("curve", "target", "direction", "t90"),
    [
        ((0.1, 0.9, 0.2, 0.5, 0.6, 0.7), 0.5, "max", 4),
        ((0.1, 0.9, 0.2, 0.5, 0.6, 0.7), 0.71, "max", None),
        ((4.0, 1.0, 3.0, 2.0, 1.5, 1.0), 2.0, "min", 4),
    ],
)
def test_a_declared_target_is_what_t90_is_the_time_to(
    curve: tuple[float, ...], target: float, direction: Literal["max", "min"], t90: int | None
) -> None:
    declared = replace(training_job("j", curve=curve), target=target, metric=Metric(direction=direction))
    found = facts_of(declared, HOSTS, NETWORK).targets
    assert found["t90"] == t90, "the first running median of three that is there"
    assert found["t95"] == facts_of(replace(declared, target=None), HOSTS, NETWORK).targets["t95"]


def test_a_summary_counts_the_censored_and_leaves_them_out_of_the_mean() -> None:
    found = summarise([training_run("p", 2.0), training_run("p", 4.0)])
    t90 = found["t90_seconds"]
    assert (t90.count, t90.censored, t90.mean) == (2, 2, 15.0)
    assert t90.interval is not None
    assert t90.interval[0] < 10.0 < 20.0 < t90.interval[1]
    assert found["jct_seconds"].p50 == 30.0
    assert "sct_seconds" not in found


def test_percentiles_are_of_all_coflows() -> None:
    cct = summarise([coflow_run("p", {str(i): 0.5 + i for i in range(1, 101)})])["cct_seconds"]
    assert (cct.p50, cct.p95, cct.p99) == pytest.approx((50.5, 95.05, 99.01))
    assert cct.interval is None, "one seed has no interval"


def test_versus_is_paired_by_seed() -> None:
    base = [training_run("fair", 2.0), training_run("fair", 4.0)]
    less = [training_run("p", 1.0), training_run("p", 2.0)]
    jct = versus(base, less)["jct_seconds"]
    assert jct.reduction == pytest.approx(0.5)
    assert jct.interval == pytest.approx((0.5, 0.5)), "every seed saved a half"
    assert versus(base, base)["t90_seconds"].reduction == 0.0


def test_what_is_saved_in_a_trace_has_the_spread_over_its_coflows() -> None:
    base = coflow_run("fair", {str(i): 2.0 + i % 7 for i in range(1, 101)})
    same_share = coflow_run("p", {coflow: 0.5 + cct / 2 for coflow, cct in base.cct.items()})
    found = versus([base], [same_share])["cct_seconds"]
    assert (found.reduction, found.interval, found.over) == (pytest.approx(0.5), pytest.approx((0.5, 0.5)), "coflows")
    some = coflow_run("p", {coflow: 0.5 + cct / (1 + int(coflow) % 2) for coflow, cct in base.cct.items()})
    found = versus([base], [some])["cct_seconds"]
    assert found.interval is not None
    assert 0.1 < found.interval[0] < found.reduction < found.interval[1] < 0.4
    alone = versus([coflow_run("fair", {"1": 2.5})], [coflow_run("p", {"1": 1.5})])["cct_seconds"]
    assert (alone.reduction, alone.interval) == (0.5, None), "one coflow has no spread"
    nothing = {"1": 0.5, "2": 1.5}
    found = versus([coflow_run("fair", nothing)], [coflow_run("p", nothing)])["cct_seconds"]
    assert found.interval == (0.0, 0.0), "a coflow of no bytes is no error"


def test_a_target_counts_for_jobs_that_reached_it_under_both() -> None:
    one, other = training_run("fair", 2.0), training_run("p", 1.0, names=("k", "j"))
    assert "t90_seconds" not in versus([one], [other]), "j reached it in one, k in the other"


def test_the_document_is_the_designs_to_the_letter() -> None:
    runs = {"sincronia": [coflow_run("sincronia", {"1": 1.5, "2": 3.5})]}
    made = document(runs, seeds=(0,), baseline="sincronia", detail=False)
    assert set(made) == {"policies", "per_coflow"}
    assert set(made["policies"]["sincronia"]) == CONTRACT
    assert made["policies"]["sincronia"] | {"p50_cct_seconds": 0, "p95_cct_seconds": 0, "p99_cct_seconds": 0} == {
        "coflows": 2, "mean_cct_seconds": 2.0, "p50_cct_seconds": 0, "p95_cct_seconds": 0, "p99_cct_seconds": 0,
        "makespan_seconds": 3.0, "wall_seconds": 0.5, "cpu_seconds": 0.25, "mean_sct_seconds": None,
        "mean_t90_seconds": None, "mean_jct_seconds": None,
    }  # fmt: skip
    assert made["per_coflow"] == {"sincronia": {"1": 1.0, "2": 3.0}}


def test_an_empty_run_has_nulls() -> None:
    run = measure([], NETWORK, outcome("p", [], {Port("a", Direction.INGRESS): 0.0}), {})
    made = document({"p": [run]}, seeds=(0,), baseline="p", detail=True)
    assert made["policies"]["p"]["coflows"] == 0
    assert made["policies"]["p"]["mean_cct_seconds"] is None
    assert made["policies"]["p"]["measures"] == {}
    json.loads(dumps(made))


def test_several_seeds_and_loads_in_a_document() -> None:
    runs = {"fair": [training_run("fair", 2.0), training_run("fair", 4.0)]}
    made = results({0.5: runs}, seeds=(3, 7)).document()
    fair = made["policies"]["fair"]
    assert set(fair) == CONTRACT | {"plans", "iterations", "measures", "versus_baseline"}
    assert (made["seeds"], fair["coflows"], fair["mean_jct_seconds"], fair["mean_t90_seconds"]) == (
        [3, 7],
        40,
        30.0,
        15.0,
    )
    assert (fair["makespan_seconds"], fair["wall_seconds"], fair["cpu_seconds"]) == (30.0, 1.0, 0.5)
    assert set(made["per_coflow"]["fair"]) == {"3/j", "3/k", "7/j", "7/k"}
    assert fair["measures"]["t95_seconds"]["censored"] == 2
    both = results({0.5: runs, 0.7: runs}, seeds=(3, 7)).document()
    assert both == {"loads": {"0.5": made, "0.7": made}}
