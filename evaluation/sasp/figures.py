"""What the arms of the claim ``sasp`` add up to: by transport and ratio, each task, and all tasks together. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from evaluation.sasp.bounds import bound
from evaluation.sasp.groups import Group
from evaluation.sasp.study.arms import PLAIN_ARMS
from evaluation.sasp.testbed.request import ArmResult, SaspResult
from simulator.reports.statistics import reduction, reduction_interval

Results = Sequence[tuple[Group, SaspResult]]
Runs = Mapping[str, Mapping[int, ArmResult]]
"""The arms of one task, by name and seed."""

CROWDED_IDLE_SHARE = 0.1
"""With less of the processors idle than this they, and not the network, are what an arm waits for."""

NEVER = 2
"""An arm that never has the target counts as so many times its length."""

MEASURES = ("target_seconds", "iteration_seconds")


class Pair(NamedTuple):
    """The best plain scheme's seconds and an arm's own, of one seed, and which of them never had the target."""

    base: float
    own: float
    base_never: bool = False
    own_never: bool = False


def add_up(results: Results) -> dict[str, Any]:
    """Return the claim's fields: how busy the processors were, and each setting of transport and ratio."""
    arms = [arm for _, result in results for arm in result.arms]
    settings = dict.fromkeys((group.transport, group.ratio) for group, _ in results)
    return {
        "torch": sorted({result.torch for _, result in results}),
        "defaults": dict(results[0][0].rates.defaults),
        "arms": len(arms),
        "least_cpu_idle_share": min(arm.cpu_idle_share for arm in arms),
        "crowded_arms": sum(arm.cpu_idle_share < CROWDED_IDLE_SHARE for arm in arms),
        "settings": [
            _setting([pair for pair in results if (pair[0].transport, pair[0].ratio) == setting])
            for setting in settings
        ],
    }


def _setting(results: Results) -> dict[str, Any]:
    """One transport and ratio."""
    first = results[0][0]
    by_task = {
        task: [pair for pair in results if pair[0].task == task]
        for task in dict.fromkeys(group.task for group, _ in results)
    }
    compared = {task: _pairs(of_task) for task, of_task in by_task.items()}
    common = [name for name in first.names if all(name in of_task for of_task in compared.values())]
    # Where only a part is measured the tasks may have no seed in common.
    together = set.intersection(*({one.seed for one, _ in of_task} for of_task in by_task.values()))
    return {
        "transport": first.transport,
        "ratio": first.ratio,
        "tasks": {task: _task(of_task, compared[task]) for task, of_task in by_task.items()},
        "all": {
            name: {measure: _all([of_task[name][measure] for of_task in compared.values()]) for measure in MEASURES}
            for name in (common if together else ())
        },
    }


def _runs(results: Results) -> Runs:
    """The arms of one task. Requests rotate them, and name them as folders can be called."""
    runs: dict[str, dict[int, ArmResult]] = {}
    for group, result in results:
        for name, arm in zip(group.in_turn, result.arms, strict=True):
            runs.setdefault(name, {})[group.seed] = arm
    return runs


_Compared = Mapping[str, Mapping[str, Mapping[int, Pair]]]
"""By arm, measure and seed."""


def _pairs(results: Results) -> _Compared:
    """Return every arm of one task beside the best plain scheme."""
    runs = _runs(results)
    plain = runs[_best_plain(runs)]
    return {
        name: {
            "target_seconds": {seed: _to_target(plain[seed], arm) for seed, arm in arms.items()},
            "iteration_seconds": {
                seed: Pair(plain[seed].seconds_an_iteration, arm.seconds_an_iteration) for seed, arm in arms.items()
            },
        }
        for name, arms in runs.items()
    }


def _best_plain(runs: Runs) -> str:
    """Return which of the plain schemes has the target soonest, in the mean over seeds."""
    return min(
        (name for name in PLAIN_ARMS if name in runs),
        key=lambda name: fmean(_own_seconds(arm) for arm in runs[name].values()),
    )


def _own_seconds(arm: ArmResult) -> float:
    return NEVER * arm.length_seconds if (found := arm.reached) is None else found[0]


def _to_target(plain: ArmResult, own: ArmResult) -> Pair:
    """Whoever never has the target is counted so that no arm gains by it: see the claim."""
    before = plain.reached
    return Pair(
        plain.length_seconds if before is None else before[0], _own_seconds(own), before is None, own.reached is None
    )


def _task(results: Results, compared: _Compared) -> dict[str, Any]:
    group, runs = results[0][0], _runs(results)
    computing = fmean(result.pass_seconds for _, result in results)
    plain_name = _best_plain(runs)
    plain = [_least_taken(arm) for arm in runs[plain_name].values()]
    return {
        "seeds": sorted({one.seed for one, _ in results}),
        "target": group.of_task.target,
        "best_plain": plain_name,
        "model_bytes": results[0][1].model_bytes,
        "pass_seconds": computing,
        "link_bps": fmean(result.link_bps for _, result in results),
        "bound": bound(group.of_task, computing, group.ratio, plain),
        "arms": {name: _arm(group, name, arms, compared[name]) for name, arms in runs.items()},
    }


def _least_taken(arm: ArmResult) -> tuple[int, float]:
    """The iterations and seconds of an arm to the target; all of them where it never had it, which is the least."""
    if (found := arm.reached) is None:
        return arm.training.iterations, arm.length_seconds
    return found[1], found[0]


def _arm(
    group: Group, name: str, arms: Mapping[int, ArmResult], compared: Mapping[str, Mapping[int, Pair]]
) -> dict[str, Any]:
    """One arm of a task over its seeds."""
    seeds = sorted(arms)
    reached = [found[1] for arm in arms.values() if (found := arm.reached) is not None]
    last = [arm.points[-1][2] for arm in arms.values() if arm.points]
    in_study = group.of_task.arms[group.transport].get(name)
    compared_there = None if in_study is None else in_study.compared
    return {
        "by_seed": [compared["target_seconds"][seed].own for seed in seeds],
        "never": len(arms) - len(reached),
        "iterations": fmean(reached) if reached else None,
        "iterations_a_second": fmean(1 / arm.seconds_an_iteration for arm in arms.values()),
        "last_metric": fmean(last) if last else None,
        "metric_at_the_end_in_the_study": None if compared_there is None else compared_there.last,
        "cpu_idle_share": fmean(arm.cpu_idle_share for arm in arms.values()),
        "against_best_plain": {measure: _beside(list(compared[measure].values())) for measure in MEASURES},
    }


def _all(tasks: Sequence[Mapping[int, Pair]]) -> dict[str, Any]:
    """All tasks: of each seed the mean over tasks of what an arm takes as a share of the best plain scheme's time."""
    seeds = [seed for seed in tasks[0] if all(seed in of_task for of_task in tasks)]
    shares = [fmean(of_task[seed].own / of_task[seed].base for of_task in tasks) for seed in seeds]
    pairs = [of_task[seed] for of_task in tasks for seed in seeds]
    together = _beside([Pair(1.0, share) for share in shares])
    return together | {
        "own_never": sum(pair.own_never for pair in pairs),
        "baseline_never": sum(pair.base_never for pair in pairs),
        "pairs": len(pairs),
    }


def _beside(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Pairs of the same seed: both means, and how much less the arm's is."""
    before, after = [pair.base for pair in pairs], [pair.own for pair in pairs]
    return {
        "baseline": fmean(before),
        "value": fmean(after),
        "reduction": reduction(before, after),
        "reduction_ci95": list(reduction_interval(before, after)),
        "own_never": sum(pair.own_never for pair in pairs),
        "baseline_never": sum(pair.base_never for pair in pairs),
        "pairs": len(pairs),
    }
