"""A link over time by job, in as many steps as an eye can tell apart. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEPS = 240
MAX_JOBS = 9
OTHERS = "all others"


@dataclass(frozen=True, slots=True)
class Timeline:
    """``rates_bps[job, step]``: mean bit/s of ``jobs`` (those that sent most; the rest together) in a step.

    ``edges`` (steps + 1) are the steps' limits in seconds; ``capacity_bps`` is the link's rate.
    """

    port: str
    capacity_bps: float
    edges: Array
    jobs: tuple[str, ...]
    rates_bps: Array


def timeline(port: str, capacity_bps: float, rows: Array, names: Sequence[str]) -> Timeline:
    """From rows (start, end, job number, bit/s) to mean rates; ``names`` are the jobs' by number."""
    if len(rows) == 0:
        return Timeline(port, capacity_bps, np.array([0.0, 1.0]), (), np.zeros((0, 1)))
    edges = np.linspace(rows[:, 0].min(), max(rows[:, 1].max(), rows[:, 0].min() + 1e-9), STEPS + 1)
    numbers = rows[:, 2].astype(int)
    sent = np.bincount(numbers, weights=(rows[:, 1] - rows[:, 0]) * rows[:, 3], minlength=len(names))
    most = [int(job) for job in np.argsort(-sent, kind="stable")[:MAX_JOBS] if sent[job] > 0]
    # First come, first drawn: a job's colour follows its first byte.
    most.sort(key=lambda job: float(rows[numbers == job, 0].min()))
    groups = [np.flatnonzero(numbers == job) for job in most]
    labels = [names[job] for job in most]
    if (rest := np.flatnonzero(~np.isin(numbers, most) & (rows[:, 3] > 0))).size:
        groups.append(rest)
        labels.append(OTHERS)
    rates = [_mean_rates(rows[group], edges) for group in groups]
    return Timeline(port, capacity_bps, edges, tuple(labels), np.array(rates))


def _mean_rates(rows: Array, edges: Array) -> Array:
    """Mean bit/s between edges: the difference of what was sent until each, over the step."""
    starts, ends, rates = rows[:, 0], rows[:, 1], rows[:, 3]
    order, last = np.argsort(starts, kind="stable"), np.argsort(ends, kind="stable")
    # Sent until t = sum over rows begun of rate x (t - start), less the same for rows that are over.
    begun = _sent_until(edges, starts[order], rates[order])
    over = _sent_until(edges, ends[last], rates[last])
    return np.maximum(np.diff(begun - over) / np.diff(edges), 0.0)


def _sent_until(times: Array, starts: Array, rates: Array) -> Array:
    count = np.searchsorted(starts, times, side="right")
    total = np.concatenate(([0.0], np.cumsum(rates)))
    moment = np.concatenate(([0.0], np.cumsum(rates * starts)))
    return total[count] * times - moment[count]
