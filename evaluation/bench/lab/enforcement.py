"""What each choice of who enforces the order is worth: the demo's kind of jobs under JPAS, beside fair sharing.

Fixed before the first run: the seeds, the arms, and this rule. Each seed draws a wave of jobs as the demo's is drawn
(``evaluation.demo_jobs``), with the same limit and the same declarations. All arms of a seed run the same jobs, one
after the other, on one network. The worth of an arm is by how much its mean time to 90 % of the converged accuracy, and
to the end, is below fair sharing's: 1 - mean over all jobs of all seeds / the same under fair sharing. The interval is
over seeds, by Student's t on the pairs of means. A job that the limit stops counts for as long as it was observed. No
seed and no arm is left out. Two arms differ where their intervals do not overlap.

The switch of an arm in which hosts enforce alone has one queue a port (*NIC alone*), or serves DSCPs by a configuration
of its own (*hosts, and a network that serves DSCPs*). The NICs of all hosts are limited to the rate of their links in
all arms, by the same tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from evaluation import resume
from evaluation.bench.figures import Bench, Figure
from evaluation.demo_jobs import BASELINE, PERIOD_SECONDS, SUBJECT, declared, demo_wave
from evaluation.jpas.stream import Wave
from simulator.reports.statistics import reduction_interval
from topologies import checkout
from topologies.box import datapath
from topologies.lab import comparison
from topologies.lab.comparison import Measure
from topologies.lab.lab import EXPECTED_ERRORS, RESULT, run_lab
from topologies.lab.results import ArmResult, LabRequest, LabResult, PolicyChoice, load_result

SEEDS = (1, 2, 3, 4, 5)
MEASURES: tuple[Measure, ...] = ("t90_seconds", "jct_seconds")


class Arm(NamedTuple):
    """A combination of who enforces and how a switch knows a job: its name for people, and what the lab runs."""

    title: str
    choice: PolicyChoice


ARMS = (
    Arm("classified: switches by flows, and hosts", PolicyChoice(SUBJECT, label="classified")),
    Arm("marked: switches by DSCPs of classes, and hosts", PolicyChoice(SUBJECT, label="marked", identity="classes")),
    Arm("dscp: switches by a DSCP of each job, and hosts", PolicyChoice(SUBJECT, label="dscp", identity="dscp")),
    Arm("switches alone, by flows", PolicyChoice(SUBJECT, label="switches", enforce=("switches",))),
    Arm("NIC alone", PolicyChoice(SUBJECT, label="nic", enforce=("hosts",), served="plain")),
    Arm(
        "hosts, and a network that serves DSCPs",
        PolicyChoice(SUBJECT, label="hosts", enforce=("hosts",), served="dscp"),
    ),
)


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure all arms with each seed. Raises RuntimeError where the lab could not run.

    A run that was cut off goes on with the seed that it had begun, if the commit is the same.
    """
    folders = {seed: folder / f"enforcement-{seed}" for seed in SEEDS}
    results = [_measured(seed, folders[seed]) for seed in SEEDS]
    # All seeds are measured, so the next run begins anew.
    for done in folders.values():
        resume.mark_unfinished(done)
    return summarised(results)


def _measured(seed: int, folder: Path) -> LabResult:
    """Returns the result of one seed. Raises RuntimeError."""
    jobs = demo_wave(period_seconds=PERIOD_SECONDS, seed=seed)
    request = LabRequest((jobs.experiment,), tuple(choices(jobs)))
    try:
        # On the userspace datapath, switches would serve by DSCP in every arm.
        found = resume.load(folder, request, datapath.choose("auto"), lambda whole: load_result(whole / RESULT))
        if found is not None and found.commit == checkout.commit():
            return found.result
        resume.mark_unfinished(folder)
        result = run_lab(request, results_dir=folder)
    except EXPECTED_ERRORS as error:
        raise RuntimeError(str(error)) from error
    resume.mark_whole(folder, request, checkout.commit())
    return result


def choices(jobs: Wave) -> list[PolicyChoice]:
    """Returns what the lab runs of one seed: fair sharing first, then each arm, whose jobs declare the same."""
    return [PolicyChoice(BASELINE), *(replace(arm.choice, declares=declared(jobs)) for arm in ARMS)]


def summarised(results: Sequence[LabResult]) -> Bench:
    """Returns the figures of the seeds' results."""
    by_name = [{arm.policy: arm for arm in result.arms} for result in results]
    figures = [_figure(arm, measure, by_name) for measure in MEASURES for arm in ARMS]
    details = {name: [comparison.policy_summary(seed[name]) for seed in by_name] for name in by_name[0]}
    return Bench(tuple(figures), datapath=results[0].datapath, details={"seeds": list(SEEDS), "arms": details})


def _figure(arm: Arm, measure: Measure, seeds: Sequence[Mapping[str, ArmResult]]) -> Figure:
    fair = [comparison.mean(seed[BASELINE], measure) for seed in seeds]
    own = [comparison.mean(seed[arm.choice.name], measure) for seed in seeds]
    return Figure(
        f"Mean {comparison.short(measure)} under {SUBJECT}: {arm.title}",
        metric=f"mean_{comparison.short(measure)}_{arm.choice.name}",
        unit="s",
        value=fmean(own),
        baseline=fmean(fair),
        baseline_name="fair sharing",
        ci95=reduction_interval(fair, own),
    )
