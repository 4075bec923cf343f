"""The claim ``beamer``: hyper-parameter studies that share a network, and how long each of their stages takes.

Optuna's studies by successive halving (``topologies.studies.tuner``), several at once (``evaluation.beamer.workload``).
A study can choose who goes on when the last trial of a rung has ended: what counts is the stage completion time (SCT),
from the first arrival in a rung to the last end, and, for the user, the time until the best configuration is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from evaluation import plots, summary
from evaluation.beamer.workload import RUNGS, STUDIES, experiment
from evaluation.lab_group import LabGroup
from simulator.reports.statistics import reduction, reduction_interval
from topologies.box.datapath import Wanted
from topologies.experiments.experiment import Experiment
from topologies.lab.results import ArmResult, LabRequest, LabResult, PolicyChoice

DATAPATH: Wanted = "auto"
FAIR, BEAMER = PolicyChoice("fair"), PolicyChoice("beamer")
SINCRONIA, FIFO_LM = PolicyChoice("sincronia"), PolicyChoice("fifo-lm")
POLICIES = (FAIR, BEAMER, SINCRONIA, FIFO_LM)
ORDER = (BEAMER.name, SINCRONIA.name, FIFO_LM.name)
BASELINES = (FAIR.name, SINCRONIA.name, FIFO_LM.name)
SEEDS = range(71, 78)
SEEDS_OF_FIFO_LM = range(71, 74)

QUICK_SEED = 1
QUICK_STUDIES = 3
QUICK_RUNGS = (4, 12, 36)


@dataclass(frozen=True, slots=True)
class Group(LabGroup):
    """The studies of one seed under several policies in turn."""

    seed: int
    policies: tuple[PolicyChoice, ...]
    studies: int = STUDIES
    rungs: tuple[int, ...] = RUNGS

    @property
    def name(self) -> str:
        """The name of the group's folder."""
        return f"studies-{self.seed}"

    def experiment(self) -> Experiment:
        """Its studies, and their jobs."""
        return experiment(self.seed, self.studies, self.rungs)

    def request(self) -> LabRequest:
        """Return the request. The order of the arms rotates with the seed, so that no policy always goes first."""
        turn = self.seed % len(self.policies)
        return LabRequest((self.experiment(),), self.policies[turn:] + self.policies[:turn])


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:
    """All arms of the claim, the longest first; quick: fewer and shorter studies, fair sharing and Beamer.

    ``others`` of False: fair sharing and Beamer alone.
    """
    if quick:
        return [Group(QUICK_SEED, (FAIR, BEAMER), QUICK_STUDIES, QUICK_RUNGS)]
    all_groups = []
    for seed in SEEDS:
        beside = (SINCRONIA, FIFO_LM) if seed in SEEDS_OF_FIFO_LM else (SINCRONIA,)
        all_groups.append(Group(seed, (FAIR, BEAMER, *(beside if others else ()))))
    return all_groups


def add_up(results: Sequence[tuple[Group, LabResult]]) -> dict[str, Any]:
    """The arms, the least idle share of the processors in any of them, and every policy beside each baseline."""
    arms = [arm for _, result in results for arm in result.arms]
    runs = {
        choice.name: {group.seed: arm for group, result in results for arm in result.arms if arm.policy == choice.name}
        for choice in POLICIES
    }
    return {
        "arms": len(arms),
        "least_cpu_idle_share": min(arm.cpu_idle_share for arm in arms),
        "tuner": sorted({study.tuner for arm in arms for study in arm.studies if study.tuner}),
        "studies": [len(group.experiment().studies) for group, _ in results],
        "policies": {name: _policy(name, runs) for name in runs if runs[name]},
    }


def stage_seconds(arm: ArmResult) -> float:
    """The mean SCT of an arm; a stage that did not end counts as long as it was watched, the least it would take.

    A stage that never began is not among them: it was its study's stage before that did not end.
    """
    return fmean(stage.watched_seconds for study in arm.studies for stage in study.stages)


def best_seconds(arm: ArmResult) -> float:
    """The mean time of an arm's studies to the best configuration; one that got none counts as it was watched."""
    return fmean(study.watched_seconds for study in arm.studies)


def rung_seconds(arm: ArmResult) -> list[float]:
    """The mean SCT of each rung, by the studies that came so far."""
    rungs = max(len(study.stages) for study in arm.studies)
    return [
        fmean(study.stages[rung].watched_seconds for study in arm.studies if len(study.stages) > rung)
        for rung in range(rungs)
    ]


def censored(arm: ArmResult) -> int:
    """Stages of an arm that did not end, or never began."""
    ended = sum(stage.seconds is not None for study in arm.studies for stage in study.stages)
    return sum(study.rungs for study in arm.studies) - ended


_MEASURES: Mapping[str, Callable[[ArmResult], float]] = {"sct": stage_seconds, "best": best_seconds}


def _policy(name: str, runs: Mapping[str, Mapping[int, ArmResult]]) -> dict[str, Any]:
    """One policy over its seeds; beside each other one over the seeds that both ran."""
    arms = runs[name]
    fields: dict[str, Any] = {
        "seeds": sorted(arms),
        "stages": sum(study.rungs for arm in arms.values() for study in arm.studies),
        "censored": sum(censored(arm) for arm in arms.values()),
        "sct_by_rung": [fmean(rung) for rung in zip(*(rung_seconds(arm) for arm in arms.values()), strict=False)],
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


_NAMES = {FAIR.name: "per-flow fair sharing", SINCRONIA.name: "Sincronia", FIFO_LM.name: "FIFO-LM"}
_WORDS = {
    "sct": ("mean_sct", "Beamer shortens the mean stage completion time against {}"),
    "best": ("mean_time_to_best", "Beamer shortens the mean time to the best configuration against {}"),
}


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Beamer beside each of the others."""
    claims = []
    for measure, (metric, words) in _WORDS.items():
        for other, comparison in fields["policies"][BEAMER.name][measure]["against"].items():
            claims.append(
                summary.claim(
                    words.format(_NAMES[other]),
                    metric=metric,
                    unit="s",
                    baseline=comparison["baseline_mean"],
                    value=comparison["mean"],
                    interval=tuple(comparison["reduction_ci95"]),
                )
            )
    return claims


_COLUMNS = (
    "policy",
    "seeds",
    "SCT (s)",
    "by rung (s)",
    "saved",
    "95 %",
    "best (s)",
    "saved",
    "95 %",
    "censored",
    "CPU",
)


def tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """One table; savings are against fair sharing on the same seeds."""
    table = Table(title="studies by successive halving")
    for number, name in enumerate(_COLUMNS):
        table.add_column(name, justify="right" if number else "left")
    for name, values in fields["policies"].items():
        sct, best = values["sct"], values["best"]
        table.add_row(
            name,
            str(len(values["seeds"])),
            f"{sct['mean']:.1f}",
            " ".join(f"{seconds:.1f}" for seconds in values["sct_by_rung"]),
            *_saved(sct),
            f"{best['mean']:.1f}",
            *_saved(best),
            f"{values['censored']}/{values['stages']}",
            f"{values['cpu_busy_share']:.0%}",
        )
    yield table


def _saved(measure: Mapping[str, Any]) -> tuple[str, str]:
    against = measure["against"].get(FAIR.name)
    if against is None:
        return "", ""
    low, high = against["reduction_ci95"]
    return f"{against['reduction']:.1%}", f"{low:.1%} to {high:.1%}"


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """What each policy saves against fair sharing of the mean SCT, and of the time to the best configuration."""
    titles = {"sct": "stage completion time", "best": "time to the best configuration"}
    shown = {
        title: {
            name: {"saved": values[measure]["against"][FAIR.name]}
            for name, values in fields["policies"].items()
            if FAIR.name in values[measure]["against"]
        }
        for measure, title in titles.items()
    }
    plots.reductions(shown, ORDER, folder / "beamer.png", measure="saved", what="mean time")
