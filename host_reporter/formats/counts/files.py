"""What a file that begins anew is: the same lines once more, the same run, or a new one. Pure."""

from __future__ import annotations

from host_reporter.formats.reading import Reading

NEAR_START = 0.05
"""A new file begins a new run if its first iteration is at most this share of the highest one before."""


def is_written_again(first: Reading | None, reading: Reading) -> bool:
    """Returns whether a new file begins with the run's ``first`` reading, which may have more metrics now."""
    if first is None:
        return False
    common = first.metrics.keys() & reading.metrics.keys()
    counters = ("iteration", "epoch", "step", "time")
    return (
        all(getattr(first, name) == getattr(reading, name) for name in counters)
        and (bool(common) or first.time is not None)
        and all(first.metrics[name] == reading.metrics[name] for name in common)
    )


def begins_a_run(
    begin: float, epoch: float | None, first: Reading | None, first_iteration: float, highest: float
) -> bool:
    """Returns whether a new file begins a run.

    ``begin`` and ``epoch`` are where the file begins. ``first``, ``first_iteration`` and ``highest`` are of the run
    before it: its first reading and iteration, and its highest iteration.
    """
    first_epoch = first.epoch if first is not None else None
    if epoch is not None and epoch > max(1.0, first_epoch or 0.0):
        return False
    return begin <= max(NEAR_START * highest, first_iteration)
