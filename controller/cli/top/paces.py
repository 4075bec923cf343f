"""How fast jobs train now, of the samples of the last half minute, and how fast they would train alone. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from controller.cli.top.contention import Load
from controller.quantities import SLOWER, pace
from controller.wire import HistoryView, JobState


def paces(history: HistoryView) -> dict[str, float]:
    """Returns the iterations a second of each job over the samples of a history. A job without two is left out."""
    found = {name: _risen(job.iterations_done) for name, job in history.jobs.items()}
    return {name: done / (steps * history.step_seconds) for name, (done, steps) in found.items() if steps}


def alone(job: JobState, load: Load) -> float | None:
    """Returns the iterations a second that an idle network would allow; None where the job declares no computing."""
    computing = job.spec.compute_seconds * (job.iterations_of_epoch or 1.0)
    return 1.0 / (computing + max(load.values(), default=0.0)) if computing > 0 else None


def in_words(now: float | None, alone: float | None) -> str:
    """Returns a pace, and that of the job alone where it is slower than that; a dash where it is not measured."""
    if now is None:
        return "-"
    return f"{pace(now, '')} of {pace(alone, '')}" if alone is not None and now < SLOWER * alone else pace(now, "")


def _risen(done: Sequence[float | None]) -> tuple[float, int]:
    """Returns by how much the iterations of the present run have risen, and over how many steps; 0: it is not known."""
    first = last = None
    for step, count in enumerate(done):
        if count is None:
            continue
        if first is None or last is None or count < last[1]:
            first = step, count
        last = step, count
    return (last[1] - first[1], last[0] - first[0]) if first is not None and last is not None else (0.0, 0)
