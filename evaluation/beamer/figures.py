"""What is made of the arms of the claim ``beamer``: each kind of studies by itself, policies beside each other. Pure.

A study can choose who goes on when the last trial of a rung has ended: what counts is the stage completion time (SCT),
from the first arrival in a rung to the last end, and, for the user, the time until the best configuration is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from evaluation.beamer.groups import BASELINES, POLICIES, Group
from evaluation.beamer.workload import study_of
from simulator.reports.statistics import reduction, reduction_interval
from topologies.experiments.experiment import Experiment
from topologies.lab.results import ArmResult, LabResult
from topologies.studies.process import StudyResult

Results = Sequence[tuple[Group, LabResult]]
Runs = Mapping[str, Mapping[int, ArmResult]]
"""The arms of one kind, by policy and seed."""


def add_up(results: Results) -> dict[str, Any]:
    """The arms, the least idle share of the processors in any of them, and each kind of studies."""
    arms = [arm for _, result in results for arm in result.arms]
    kinds = list(dict.fromkeys(group.kind.name for group, _ in results))
    return {
        "arms": len(arms),
        "least_cpu_idle_share": min(arm.cpu_idle_share for arm in arms),
        "tuner": sorted({study.tuner for arm in arms for study in arm.studies if study.tuner}),
        "kinds": {name: _kind([pair for pair in results if pair[0].kind.name == name]) for name in kinds},
    }


def stage_seconds(arm: ArmResult) -> float:
    """The mean SCT of an arm; a stage that did not end counts as long as it was watched, the least it would take.

    A stage that never began is not among them: it was its study's stage before that did not end.
    """
    return fmean(stage.watched_seconds for study in arm.studies for stage in study.stages)


def best_seconds(arm: ArmResult) -> float:
    """The mean time of an arm's studies to the best configuration; one that got none counts as it was watched.

    The brackets of a study are compared when all of them are over.
    """
    brackets: dict[str, list[StudyResult]] = {}
    for study in arm.studies:
        brackets.setdefault(study_of(study.study), []).append(study)
    return fmean(map(_study_best, brackets.values()))


def _study_best(brackets: Sequence[StudyResult]) -> float:
    if any(bracket.best_seconds is None for bracket in brackets):
        return max(bracket.watched_seconds for bracket in brackets)
    return max(brackets, key=lambda bracket: bracket.best_metric or 0.0).watched_seconds


def rung_seconds(arm: ArmResult, experiment: Experiment) -> dict[str, list[float]]:
    """The SCTs of an arm by rung, which is called by the iterations of a trial that leaves it."""
    untils = {plan.name: plan.rungs for plan in experiment.studies}
    by_rung: dict[str, list[float]] = {str(until): [] for until in sorted({u for of in untils.values() for u in of})}
    for study in arm.studies:
        for until, stage in zip(untils[study.study], study.stages, strict=False):
            by_rung[str(until)].append(stage.watched_seconds)
    return by_rung


def censored(arm: ArmResult) -> int:
    """Stages of an arm that did not end, or never began."""
    ended = sum(stage.seconds is not None for study in arm.studies for stage in study.stages)
    return sum(study.rungs for study in arm.studies) - ended


_MEASURES: Mapping[str, Callable[[ArmResult], float]] = {"sct": stage_seconds, "best": best_seconds}


def _kind(results: Results) -> dict[str, Any]:
    """The studies of one kind: how many there were in each experiment, and every policy beside each baseline."""
    runs = {
        choice.name: {group.seed: arm for group, result in results for arm in result.arms if arm.policy == choice.name}
        for choice in POLICIES
    }
    experiments = {group.seed: group.experiment() for group, _ in results}
    return {
        "studies": [group.kind.studies for group, _ in results],
        "policies": {name: _policy(name, runs, experiments) for name in runs if runs[name]},
    }


def _policy(name: str, runs: Runs, experiments: Mapping[int, Experiment]) -> dict[str, Any]:
    """One policy over its seeds; beside each other one over the seeds that both ran."""
    arms = runs[name]
    fields: dict[str, Any] = {
        "seeds": sorted(arms),
        "stages": sum(study.rungs for arm in arms.values() for study in arm.studies),
        "censored": sum(censored(arm) for arm in arms.values()),
        "sct_by_rung": _by_rung(rung_seconds(arm, experiments[seed]) for seed, arm in arms.items()),
        "cpu_busy_share": fmean(1.0 - arm.cpu_idle_share for arm in arms.values()),
    }
    for measure, of in _MEASURES.items():
        fields[measure] = {
            "mean": fmean(of(arms[seed]) for seed in sorted(arms)),
            "by_seed": [of(arms[seed]) for seed in sorted(arms)],
            "against": {
                other: _beside(
                    [(of(runs[other][seed]), of(arms[seed])) for seed in sorted(arms) if seed in runs[other]]
                )
                for other in BASELINES
                if other != name and set(arms) & set(runs[other])
            },
        }
    return fields


def _by_rung(arms: Iterable[Mapping[str, Sequence[float]]]) -> dict[str, float]:
    """The mean SCT of each rung over the arms; a rung that no study came to is left out."""
    all_seconds: dict[str, list[float]] = {}
    for arm in arms:
        for rung, seconds in arm.items():
            all_seconds.setdefault(rung, []).extend(seconds)
    return {rung: fmean(seconds) for rung, seconds in all_seconds.items() if seconds}


def _beside(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Pairs of the same seed, (other, subject): both means, and how much less the subject's is."""
    others, subjects = zip(*pairs, strict=True)
    return {
        "seeds": len(pairs),
        "baseline_mean": fmean(others),
        "mean": fmean(subjects),
        "reduction": reduction(others, subjects),
        "reduction_ci95": list(reduction_interval(others, subjects)),
    }
