"""What a job did, from the progress file that the callback wrote: the trainer's own clock and the held-out accuracy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simulator.reports.targets import job_times
from topologies.lab.results import JobResult, Point


@dataclass(frozen=True, slots=True)
class History:
    """``points``: those with a metric, seconds since the job's arrival; ``ended``: when it said so.

    ``iterations``: the most that it told.
    """

    points: tuple[Point, ...]
    ended: float | None
    iterations: int = 0


def read_history(path: Path, arrival_epoch: float) -> History:
    """A progress file of the helper's. Raises OSError, ValueError with the line."""
    points: list[Point] = []
    ended: float | None = None
    iterations = 0
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            record = json.loads(line)
            seconds = float(record["time"]) - arrival_epoch
            if record.get("ended"):
                ended = seconds
                continue
            iterations = max(iterations, int(record["iteration"]))
            if (metric := record.get("metric")) is not None:
                points.append((seconds, int(record["iteration"]), float(metric)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"line {number} is no record of the helper: {error}") from error
    return History(tuple(points), ended, iterations)


def times(history: History, *, done: bool, watched_seconds: float) -> JobResult:
    """A job's times by its own full run. One that was not done has no target of its own yet: it is censored."""
    points = history.points
    if not done or history.ended is None or not points:
        return JobResult(None, None, None, censored=True, watched_seconds=watched_seconds, history=points)
    targets = job_times(points, [metric for _, _, metric in points], history.ended)
    return JobResult(targets.t90, targets.t95, targets.jct, targets.censored, history.ended, points)


def against(job: JobResult, full: Sequence[Point]) -> JobResult:
    """A job that was stopped, with the targets of the same training's full run in another arm."""
    if job.jct_seconds is not None or not job.history or not full:
        return job
    targets = job_times(job.history, [metric for _, _, metric in full], None)
    return replace(job, t90_seconds=targets.t90, t95_seconds=targets.t95)


def largest_difference(a: Sequence[Point], b: Sequence[Point]) -> float:
    """How far two runs of the same training are apart in accuracy, at most, at iterations that both reported."""
    ours = {iteration: metric for _, iteration, metric in a}
    return max((abs(metric - ours[iteration]) for _, iteration, metric in b if iteration in ours), default=0.0)
