"""What the runs say: how many iterations more an arm needs, and how much sooner it has the target. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from evaluation.sasp.study.plan import taken_by
from evaluation.sasp.study.runs import Trained, reached
from simulator.reports.statistics import reduction, reduction_interval


class Row(NamedTuple):
    """An arm in a task. ``taken``: iterations to the target by seed; a seed that had it never counts twice the length.

    ``iteration_seconds``: of an iteration, in seconds or with computing of an iteration as the unit. ``reached``: the
    share of seeds that reached the target. ``ends``: the metric at the end, of each run that went so far.
    """

    task: str
    arm: str
    rate: float
    strength: float
    taken: Mapping[int, float]
    iteration_seconds: float
    reached: float
    ends: tuple[float, ...]

    @property
    def iterations(self) -> float:
        """To the target, in the mean over seeds."""
        return fmean(self.taken.values())

    @property
    def seconds(self) -> float:
        """To the target, in the mean over seeds."""
        return self.iterations * self.iteration_seconds

    @property
    def last(self) -> float:
        """The metric at the end; no number where no run went so far."""
        return fmean(self.ends) if self.ends else math.nan


class Saved(NamedTuple):
    """The share that is saved of another's time, and its 95 % interval, paired over seeds."""

    share: float
    interval: tuple[float, float]


def row(trained: Sequence[Trained], target: float, iteration_seconds: float) -> Row:
    """Of one arm's runs in one task, of which there is at least one."""
    run = trained[0].run
    return Row(
        run.task, run.arm, run.rate, run.strength,
        {one.run.seed: taken_by(one, target) for one in trained}, iteration_seconds,
        fmean(reached(one.points, target) is not None for one in trained),
        tuple(one.points[-1][1] for one in trained if one.points[-1][0] == run.iterations),
    )  # fmt: skip


def best_of(rows: Sequence[Row], task: str, arms: Sequence[str]) -> Row | None:
    """The row of a task with the shortest time to the target, of these arms; None: there is none."""
    own = [one for one in rows if one.task == task and one.arm in arms]
    return min(own, key=lambda one: one.seconds, default=None)


def saved(baseline: Row, subject: Row) -> Saved:
    """What an arm saves of another's time to the target, on the seeds that both were trained on."""
    pairs = _paired(baseline, subject)
    before, after = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return Saved(reduction(before, after), reduction_interval(before, after))


def saved_over_tasks(rows: Sequence[Row], plain: Sequence[str]) -> Mapping[str, Saved]:
    """By arm: the mean over tasks of what is saved of the best plain arm's time to the target."""
    tasks = list(dict.fromkeys(one.task for one in rows))
    best = {task: one for task in tasks if (one := best_of(rows, task, plain)) is not None}
    by_arm = {
        arm: [one for one in rows if one.arm == arm and one.task in best]
        for arm in dict.fromkeys(one.arm for one in rows)
    }
    return {arm: _together(best, own) for arm, own in by_arm.items() if len(own) == len(tasks)}


def _together(best: Mapping[str, Row], own: Sequence[Row]) -> Saved:
    """Each task counts alike: times are shares of its best plain arm's mean."""
    shares = [
        [(before / base, after / base) for before, after in pairs]
        for one in own
        for pairs in [_paired(best[one.task], one)]
        for base in [fmean(before for before, _ in pairs)]
    ]
    before, after = ([fmean(pair[side] for pair in seed) for seed in zip(*shares, strict=False)] for side in range(2))
    return Saved(reduction(before, after), reduction_interval(before, after))


def _paired(baseline: Row, subject: Row) -> list[tuple[float, float]]:
    """Both arms' seconds to the target, by seed."""
    return [
        (baseline.taken[seed] * baseline.iteration_seconds, subject.taken[seed] * subject.iteration_seconds)
        for seed in sorted(set(baseline.taken) & set(subject.taken))
    ]


_HEAD = f"{'arm':36} {'rate':>9} {'str.':>5} {'its':>6} {'s/it':>6} {'it/s':>6} {'saved':>6} {'95 %':>13} {'there':>5}"


def lines(rows: Sequence[Row], plain: Sequence[str]) -> list[str]:
    """A table for people; times, and iterations a second, are compared with those of the best of the arms ``plain``.

    The last column is the metric at the end.
    """
    text = []
    for task in dict.fromkeys(one.task for one in rows):
        text.append(f"{task:12} {_HEAD} last")
        best = best_of(rows, task, plain)
        text += [_line(one, best) for one in rows if one.task == task]
    return text


def _line(one: Row, best: Row | None) -> str:
    compared = " " * 27
    if best is not None:
        pace, less = best.iteration_seconds / one.iteration_seconds - 1, saved(best, one)
        compared = f"{pace:+6.0%} {less.share:6.0%} {shown(less.interval):>13}"
    return (
        f"{'':12} {one.arm:36} {one.rate:9.2g} {one.strength:5.2g} {one.iterations:6.0f} "
        f"{one.iteration_seconds:6.3g} {compared} {one.reached:5.0%} {one.last:.4g}"
    )


def shown(interval: tuple[float, float]) -> str:
    """An interval as people read it; empty where too few seeds are there for one."""
    low, high = interval
    return "" if math.isnan(low) else f"{low:.0%} to {high:.0%}"
