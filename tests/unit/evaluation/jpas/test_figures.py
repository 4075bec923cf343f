"""What is made of the arms: reductions, headroom, shares of what knowing everything wins, and the headlines."""

from __future__ import annotations

import pytest

from evaluation.jpas import claim
from evaluation.jpas.arms import AT_HEAVY, FAIR, Group
from evaluation.jpas.figures import add_up, alone
from simulator.reports.targets import target_iteration
from topologies.experiments.workload import HEAVY, LIGHT
from topologies.lab import comparison
from topologies.lab.results import ArmResult, Control, JobResult, LabResult

CONTROL = Control(3, 0.05, 0.09, plans=10, flow_mods=20, gate_renewals=5)
PER_ITERATION = 0.1
FACTORS = {
    FAIR: 3.0, "none": 2.5, "everything": 2.0, "family": 2.4, "target": 2.1, "half": 2.2, "both": 2.1,
    "wrong-family": 2.6,
}  # fmt: skip


def result(group: Group) -> LabResult:
    """A result in which each arm takes a multiple of what the jobs take alone."""
    per_iteration = {job.id: PER_ITERATION for job in group.experiment.jobs}
    times = alone(group.experiment, per_iteration)
    arms = []
    for choice in group.request().policies:
        factor = FACTORS[choice.name]
        jobs = {
            name: JobResult(*(of_job[measure] * factor for measure in comparison.MEASURES), False, 1e3, history=())
            for name, of_job in times.items()
        }
        arms.append(ArmResult(group.experiment.name, group.seed, choice.name, jobs, CONTROL, (1,) * 8, 0.5, 60.0))
    known = {"x": per_iteration} if group.alone_iterations else {}
    return LabResult("user", 13, 1e7, 8, None, known, tuple(arms))


def test_a_job_alone_takes_its_iterations() -> None:
    group = Group("old", LIGHT, 1, ("none",))
    first = group.experiment.jobs[0]
    times = alone(group.experiment, {job.id: PER_ITERATION for job in group.experiment.jobs})[first.id]
    assert times["t90_seconds"] == pytest.approx(PER_ITERATION * (target_iteration(first.metrics, 0.9) or 0))
    assert times["t90_seconds"] < times["t95_seconds"] <= times["jct_seconds"]
    assert times["jct_seconds"] == pytest.approx(PER_ITERATION * first.iterations)


def test_every_arm_is_compared_with_fair_sharing_and_with_what_can_be_won() -> None:
    groups = [Group("families", HEAVY, seed, AT_HEAVY) for seed in (80, 83)]
    arms = add_up([(group, result(group)) for group in groups])["workloads"]["families"]["heavy"]
    for knows, factor in FACTORS.items():
        figures = arms[knows]
        assert figures["seeds"] == [80, 83]
        assert figures["t90"]["reduction"] == pytest.approx(1 - factor / 3)
        assert figures["t90"]["reduction_ci95"] == pytest.approx([1 - factor / 3] * 2)
        assert figures["t90"]["headroom_won"] == pytest.approx((3 - factor) / 2)
        assert figures["of_everything"]["share"] == pytest.approx(3 - factor)
        assert figures["of_everything"]["ci95"] == pytest.approx([3 - factor] * 2)
        assert figures["saved_against_none"]["share"] == pytest.approx(1 - factor / FACTORS["none"])


def test_jobs_are_told_apart_by_the_earlier_runs_of_their_families() -> None:
    groups = [Group("families", HEAVY, seed, AT_HEAVY) for seed in (80, 83)]
    buckets = add_up([(group, result(group)) for group in groups])["workloads"]["families"]["heavy"]["by_earlier_runs"]
    assert sum(bucket["jobs"] for bucket in buckets.values()) == 2 * HEAVY.jobs
    assert buckets["none"]["jobs"] > HEAVY.jobs, "the wave of seed 80 is cold"
    assert len(buckets) > 2
    for bucket in buckets.values():
        assert bucket["none"] == pytest.approx(bucket["fair"] * 2.5 / 3)


def test_headlines_say_which_workload_and_what_was_known() -> None:
    groups = [Group("old", HEAVY, 66, ("none", "target")), Group("families", HEAVY, 80, AT_HEAVY)]
    lines = claim.headline(add_up([(group, result(group)) for group in groups]))
    assert len(lines) == 4 * (2 + len(AT_HEAVY))
    assert {line["metric"] for line in lines} == {"mean_t90", "mean_t95", "mean_jct", "t90_above_alone"}
    assert {line["workload"] for line in lines} == {"families", "old"}
    (line,) = [x for x in lines if (x["workload"], x["knows"], x["metric"]) == ("old", "target", "t90_above_alone")]
    assert (line["policy"], line["load"]) == ("jpas", "heavy")
    assert line["reduction"] == pytest.approx(0.45)
    assert {line["policy"] for line in lines if line["knows"] == "everything"} == {"everything"}


def test_without_solo_times_there_is_no_headroom() -> None:
    group = Group("families", LIGHT, 1, ("target",), alone_iterations=0)
    fields = add_up([(group, result(group))])
    assert fields["workloads"]["families"]["light"]["target"]["t90"]["headroom_won"] is None
    assert [line["metric"] for line in claim.headline(fields)] == ["mean_t90", "mean_t95", "mean_jct"]
    assert len(list(claim.tables(fields))) == 1
