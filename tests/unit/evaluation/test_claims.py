"""What the demo and the evaluations make of results: workloads, statistics, summaries."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from evaluation import summary
from evaluation.demo import demo_summary
from simulator.reports.statistics import (
    mean_interval,
    paired_bootstrap,
    reduction,
    reduction_interval,
    reduction_interval_over_jobs,
)
from simulator.workloads import curves
from topologies.experiments.workload import DEMO, HEAVY, LIGHT, MIDDLE, communication_seconds, generate
from topologies.lab import comparison
from topologies.lab.queue_proof import QueueProof
from topologies.lab.results import ArmResult, Control, JobResult, LabResult


def job(t90: float | None, t95: float | None = 20.0, jct: float | None = 30.0, watched: float = 40.0) -> JobResult:
    return JobResult(t90, t95, jct, None in (t90, t95, jct), watched, history=((1.0, 1, 0.5),))


def arm(policy: str, jobs: dict[str, JobResult], seed: int = 1) -> ArmResult:
    control = Control(3, 0.05, 0.09, plans=10, flow_mods=20, gate_renewals=5)
    return ArmResult("x", seed, policy, jobs, control, (5, 4, 0, 0, 0, 0, 0, 1), 0.5, 40.0)


def lab(*arms: ArmResult) -> LabResult:
    return LabResult("uml", 13, 1e8, 8, QueueProof(94e6, 1e6), {}, arms)


@pytest.mark.parametrize("load", [DEMO, LIGHT, MIDDLE, HEAVY])
def test_a_workload_is_its_seeds_alone_and_within_its_own_words(load) -> None:
    experiment = generate(load, 3)
    assert experiment == generate(load, 3)
    assert experiment != generate(load, 4)
    assert len(experiment.jobs) == load.jobs >= 8
    assert all(a.arrival <= b.arrival for a, b in pairwise(experiment.jobs))
    recorded = {curve.name: curve for curve in curves.index()}
    for planned in experiment.jobs:
        assert recorded[planned.curve].use == "claim"
        assert 20 <= planned.iterations <= recorded[planned.curve].iterations
        each = planned.compute_seconds + communication_seconds(
            planned.architecture, len(planned.hosts), planned.model_bytes, experiment.link_bps
        )
        assert each >= 0.399
        assert 19.9 <= each * planned.iterations <= 40.1


def test_a_mean_interval_is_students_t() -> None:
    low, high = mean_interval([1.0, 2.0, 3.0])
    assert (low, high) == (pytest.approx(2 - 2.4841, abs=1e-3), pytest.approx(2 + 2.4841, abs=1e-3))
    assert all(math.isnan(end) for end in mean_interval([1.0]))


def test_the_bootstrap_is_repeatable_and_around_the_statistic() -> None:
    rng = np.random.default_rng(1)
    fair = rng.uniform(10, 20, 40)
    jpas = fair * rng.uniform(0.5, 0.9, 40)
    low, high = reduction_interval_over_jobs(fair.tolist(), jpas.tolist())
    assert low < reduction(fair.tolist(), jpas.tolist()) < high
    assert (low, high) == reduction_interval_over_jobs(fair.tolist(), jpas.tolist())
    assert all(math.isnan(end) for end in paired_bootstrap([(1.0, 1.0)], lambda d: d[..., 0].mean(axis=1)))


def test_a_censored_job_is_counted_and_counts_as_long_as_it_was_watched() -> None:
    fair = arm("fair", {"a": job(10.0), "b": job(20.0), "c": job(None)})
    jpas = arm("jpas", {"a": job(5.0), "b": job(None, watched=70.0), "c": job(1.0)})
    assert comparison.values(jpas, "t90_seconds") == [5.0, 70.0, 1.0]
    assert comparison.mean(fair, "t90_seconds") == pytest.approx(70 / 3)
    assert comparison.censored(jpas) == ["b"]
    assert comparison.policy_summary(jpas)["censored"] == ["b"]
    assert comparison.policy_summary(jpas)["jobs"]["b"]["t90_seconds"] is None


def test_the_numbers_of_a_summary_agree_where_jobs_are_censored() -> None:
    fair = arm("fair", {"a": job(10.0), "b": job(20.0), "c": job(None)})
    jpas = arm("jpas", {"a": job(5.0), "b": job(None), "c": job(1.0)})
    document = demo_summary(lab(fair, jpas), "scripts/demo")
    t90, t95, jct = document["headline"]
    assert t90["reduction"] == pytest.approx(document["reduction"]["t90"])
    assert t95["reduction"] == pytest.approx(document["reduction"]["t95"])
    for claim, measure in ((t90, "t90"), (t95, "t95"), (jct, "jct")):
        assert claim["metric"] == f"mean_{measure}"
        assert claim["value"] == document["policies"]["jpas"][f"mean_{measure}_seconds"]
        assert claim["baseline"] == document["policies"]["fair"][f"mean_{measure}_seconds"]


def test_the_demos_summary_has_the_fields_of_the_contract(tmp_path) -> None:
    result = lab(arm("fair", {"a": job(10.0), "b": job(20.0)}), arm("jpas", {"a": job(5.0), "b": job(16.0)}))
    summary.write(tmp_path / "summary.json", demo_summary(result, "scripts/demo"))
    document = json.loads((tmp_path / "summary.json").read_text())
    assert document["testbed"] == {"hosts": 13, "datapath": "uml", "link_bps": 1e8, "queues": 8}
    assert document["queue_proof"] == {"high_bps": 94e6, "low_bps": 1e6, "ratio": 94.0}
    assert document["policies"]["jpas"]["mean_t90_seconds"] == 10.5
    assert document["policies"]["fair"]["jobs"]["b"]["t90_seconds"] == 20.0
    assert document["reduction"]["t90"] == pytest.approx(0.3)
    assert document["reduction"]["t90_ci95"][0] <= 0.3 <= document["reduction"]["t90_ci95"][1]
    assert document["control"] == {"report_to_rule_ms": {"p50": 50.0, "p99": 90.0}, "plans": 10, "flow_mods": 20}
    assert document["bytes_by_class"]["fair"] == [5, 4, 0, 0, 0, 0, 0, 1]
    assert {"command", "commit", "machine", "seeds", "headline"} <= set(document)
    assert document["headline"][0]["reduction"] == pytest.approx(0.3)


def test_a_summary_has_no_nan(tmp_path) -> None:
    summary.write(tmp_path / "s.json", {"a": float("nan"), "b": [float("inf"), {"c": 1.0}]})
    assert json.loads((tmp_path / "s.json").read_text()) == {"a": None, "b": [None, {"c": 1.0}]}


def test_the_interval_of_a_reduction_is_of_the_ratio_of_means() -> None:
    """One long pair and short ones: the mean of the pairs' own reductions is another quantity."""
    before, after = [100.0, 1.0, 1.0, 1.0], [50.0, 1.0, 1.0, 1.0]
    low, high = reduction_interval(before, after)
    share = reduction(before, after)
    assert share == pytest.approx(1 - 53 / 103)
    assert (low + high) / 2 == pytest.approx(share)
    assert 0.125 < low < share < high, "0.125 is the mean of 0.5, 0, 0 and 0"
    assert reduction_interval([2.0, 8.0], [1.0, 4.0]) == pytest.approx((0.5, 0.5))
    assert all(math.isnan(end) for end in reduction_interval([2.0], [1.0]))


def test_the_interval_of_a_reduction_covers_what_it_says() -> None:
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(1000):
        before = random.normal(10, 1.5, 5)
        after = 0.7 * before + random.normal(0, 1, 5)
        low, high = reduction_interval(before.tolist(), after.tolist())
        covered += low <= 0.3 <= high
    assert 925 <= covered <= 975
