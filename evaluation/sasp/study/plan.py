"""The rule of the study: how rates are tuned, what the target is, and which runs are compared. Pure.

It was written before the first run, and holds for each arm alike. What was looked at before is bsp+overlap alone, at
each task's middle rate, on a seed that is not used here: from that the tasks' lengths and the share come.

The target of a task closes ``TARGET_SHARE`` of the gain of bsp+overlap at its best rate, from its first look to its
best, in the median over the tuning seeds. A run ends at the target. What it took is the number of iterations until
then; a run that never has the target takes twice its length.

Learning rates race on the tuning seeds, one seed after the other, the middle of the grid first. A rate is out, and its
run ends, as soon as it has taken ``SLACK`` times what the best took on the same seeds. Who takes least on all of them
is chosen. Where that is an edge of the grid, the grid grows there, at most ``GROWTHS`` times. Then an arm with delay
compensation races its strengths at that rate, and the others the rates halfway to its neighbours.

The comparison is on other seeds. The runs of the first ``TO_THE_END`` go on to their length, for the quality there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from evaluation.sasp.study.arms import Arm
from evaluation.sasp.study.runs import Goal, Run, Trained, reached

WORKERS = 4
TUNING_SEEDS = (1, 2, 3)
TEST_SEEDS = tuple(range(101, 109))
TO_THE_END = 4

LOWEST, HIGHEST = -4, 2
"""The grid of learning rates at first, in quarters of a decade from the task's own."""

GROWTHS, GROWN_BY = 2, 2
SLACK = 1.25
TARGET_SHARE = 0.9
BASELINE = "bsp+overlap"

Train = Callable[[Run, Goal], Trained]
"""Trains a run up to a goal."""


class Choice(NamedTuple):
    """The learning rate and strength of an arm."""

    rate: float
    strength: float


class Setting(NamedTuple):
    """A task as the plan needs it: its middle rate and its length; of each arm the leads and the file of its delays."""

    task: str
    optimizer: str
    rate: float
    iterations: int
    leads: Mapping[str, tuple[int, ...]]
    delays: Mapping[str, str]


def run_of(setting: Setting, arm: str, choice: Choice, seed: int) -> Run:
    """One run."""
    return Run(
        setting.task, arm, setting.optimizer, choice.rate, choice.strength, seed, setting.iterations, WORKERS,
        setting.leads[arm], setting.delays.get(arm, ""),
    )  # fmt: skip


def target_of(setting: Setting, train: Train) -> float:
    """The task's target."""
    best, gained = -math.inf, math.nan
    for step in _middle_first(LOWEST, HIGHEST):
        runs = [run_of(setting, BASELINE, Choice(_rate(setting, step), 0.0), seed) for seed in TUNING_SEEDS]
        trained = [train(run, Goal(run.iterations)) for run in runs]
        if (quality := median(map(_best, trained))) > best:
            best = quality
            gained = median(one.points[0][1] + TARGET_SHARE * (_best(one) - one.points[0][1]) for one in trained)
    return gained


def tuned(setting: Setting, arm: Arm, target: float, train: Train) -> Choice:
    """The rate and strength of an arm."""
    low, high, strength = LOWEST, HIGHEST, arm.strengths[len(arm.strengths) // 2]
    for _ in range(1 + GROWTHS):
        choices = [Choice(_rate(setting, step), strength) for step in _middle_first(low, high)]
        first = fastest(setting, arm.name, choices, target, train)
        if first.rate not in {_rate(setting, low), _rate(setting, high)}:
            break
        low -= GROWN_BY * (first.rate == _rate(setting, low))
        high += GROWN_BY * (first.rate == _rate(setting, high))
    beside = [first._replace(rate=first.rate * 10**eighth) for eighth in (-1 / 8, 1 / 8)]
    if len(arm.strengths) > 1:
        beside = [first._replace(strength=other) for other in arm.strengths if other != strength]
    return fastest(setting, arm.name, [first, *beside], target, train)


def fastest(setting: Setting, arm: str, choices: Iterable[Choice], target: float, train: Train) -> Choice:
    """The winner of the race of ``choices``, of which there is at least one."""
    taken = dict.fromkeys(choices, 0.0)
    for seed in TUNING_SEEDS:
        best = math.inf
        for choice in taken:
            run = run_of(setting, arm, choice, seed)
            left = min(run.iterations, math.ceil(SLACK * best - taken[choice]) if best < math.inf else run.iterations)
            trained = train(run, Goal(max(1, left), target))
            taken[choice] += taken_by(trained, target) if is_over(trained, target) else math.inf
            best = min(best, taken[choice])
        taken = {choice: iterations for choice, iterations in taken.items() if iterations <= SLACK * best}
    return min(taken, key=lambda choice: (taken[choice], choice))


def of_choice(setting: Setting, arm: str, choice: Choice, target: float) -> list[tuple[Run, Goal]]:
    """The runs from which a choice was tuned."""
    return [(run_of(setting, arm, choice, seed), Goal(setting.iterations, target)) for seed in TUNING_SEEDS]


def comparison(setting: Setting, arm: str, choice: Choice, target: float) -> list[tuple[Run, Goal]]:
    """The runs that are compared."""
    return [
        (run_of(setting, arm, choice, seed), Goal(setting.iterations, None if number < TO_THE_END else target))
        for number, seed in enumerate(TEST_SEEDS)
    ]


def taken_by(trained: Trained, target: float) -> float:
    """Iterations to the target; twice the length where it was never reached."""
    when = reached(trained.points, target)
    return float(2 * trained.run.iterations if when is None else when)


def is_over(trained: Trained, target: float) -> bool:
    """Whether more iterations would change nothing of what the run has taken."""
    return Goal(trained.run.iterations, target).is_met(trained.points)


def _rate(setting: Setting, step: int) -> float:
    return float(setting.rate * 10 ** (step / 4))


def _middle_first(low: int, high: int) -> Sequence[int]:
    return sorted(range(low, high + 1), key=lambda step: (abs(step), step))


def _best(trained: Trained) -> float:
    """The best metric, smoothed as targets are."""
    metrics = [metric for _, metric in trained.points if math.isfinite(metric)]
    smooth = [median(metrics[place : place + 3]) for place in range(max(1, len(metrics) - 2))] if metrics else []
    return max(smooth, default=-math.inf)
