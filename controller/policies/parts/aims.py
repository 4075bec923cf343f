"""What a job is judged by: the target that it declares, or its own 90 % of convergence.

A target is crossed once. The policy remembers the value that a run has crossed, and when, so a job whose target changes
afterwards does not go before others a second time. A new run has begun only if the job has another arrival and has done
fewer iterations than at the crossing. If only one of the two differs, it is the same run.

A target that a job declares only after it has crossed it counts for nothing: it would buy a place before others for
what is done already. So the policy remembers, too, which targets jobs have declared and not yet crossed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.curves.fit import Declared, Fit
from controller.model import Job

_VALUE, _ITERATION, _ARRIVAL = "crossed:", "crossed-at:", "crossed-run:"
_DECLARED = "declared:"

_OWN = "its own 90 % of convergence counts instead"

UNREACHABLE = 0.01
"""A target is out of reach where the fit's chance to get there by the run's end is below this."""
UNREACHABLE_AFTER = 0.5
"""Call no target out of reach before this share of the run: early fits expect too little of most runs."""
FAR = 1.15
"""Call a target out of reach only if its gap is more than this many times the gap to the best converged metric that the
fit expects."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """The value that a run of a job has crossed, at which iteration, and the arrival of the job at that time."""

    value: float
    iteration: float
    arrival: float

    def is_of(self, job: Job) -> bool:
        """Returns whether the crossing was in the present run of the job."""
        return self.arrival == job.arrival or job.iterations_done >= self.iteration


@dataclass(frozen=True, slots=True)
class Aim:
    """What a job is judged by: its declared target, as fitted, or None for its own 90 % of convergence.

    ``crossing`` is not None where the run has crossed its target. ``note`` says why the declared target does not count.
    """

    value: float | None = None
    declared: Declared | None = None
    crossing: Crossing | None = None
    note: str = ""

    @property
    def is_declared(self) -> bool:
        """Returns whether the job is judged by a target that it declares, or declared when it crossed the target."""
        return self.declared is not None or self.crossing is not None


OWN = Aim()


def crossings(jobs: Iterable[Job], memory: Mapping[str, float]) -> dict[str, Crossing]:
    """Returns the crossings of the jobs' present runs that the memory has."""
    remembered = {}
    for job in jobs:
        if (value := memory.get(_VALUE + job.id)) is not None:
            crossing = Crossing(value, memory[_ITERATION + job.id], memory[_ARRIVAL + job.id])
            if crossing.is_of(job):
                remembered[job.id] = crossing
    return remembered


def judged(jobs: Sequence[Job], crossed: Mapping[str, Crossing]) -> tuple[Job, ...]:
    """Returns the jobs with the targets by which they are judged. A target that was crossed stays the target."""
    return tuple(
        job if (crossing := crossed.get(job.id)) is None else replace(job, target=crossing.value) for job in jobs
    )


def is_in_time(job: Job, memory: Mapping[str, float], *, is_known: bool) -> bool:
    """Returns whether a job has declared its target before it may have crossed it.

    ``is_known``: the plan before had the job. Of a new one nobody can tell, so its target is in time.
    """
    return not is_known or memory.get(_DECLARED + job.id) == job.target


def aim(job: Job, fitted: Fit | None, crossing: Crossing | None, *, in_time: bool = True) -> Aim:
    """Returns what a job is judged by. ``fitted`` is the fit with the target that ``judged`` gives the job."""
    declared = None if fitted is None else fitted.declared
    if crossing is not None:
        return Aim(crossing.value, declared, crossing, _changed(job, crossing))
    if job.target is None or fitted is None or declared is None:
        return OWN
    target = f"its target, {job.metric.name} {job.target:.4g}"
    if declared.crossed is not None:
        if in_time:
            return Aim(job.target, declared, Crossing(job.target, declared.crossed, job.arrival))
        late = f"was declared after it was crossed at iteration {declared.crossed:.0f}"
        return Aim(note=f"{target}, {late}, so {_OWN}")
    if (reason := _unreachable(job, job.target, fitted, declared)) is not None:
        return Aim(note=f"{target}, {reason}, so {_OWN}")
    return Aim(job.target, declared)


def open_targets(jobs: Sequence[Job], fits: Sequence[Fit | None], judged_by: Mapping[str, Aim]) -> dict[str, float]:
    """Returns what ``is_in_time`` reads, for the ordering's memory: the targets that jobs have not crossed yet."""
    remembered = {}
    for job, fitted in zip(jobs, fits, strict=True):
        is_crossed = fitted is not None and fitted.declared is not None and fitted.declared.crossed is not None
        if job.target is not None and not is_crossed and judged_by[job.id].crossing is None:
            remembered[_DECLARED + job.id] = job.target
    return remembered


def to_memory(crossed: Mapping[str, Crossing]) -> dict[str, float]:
    """Returns what ``crossings`` reads, for the ordering's memory."""
    remembered: dict[str, float] = {}
    for job, crossing in crossed.items():
        remembered |= {
            _VALUE + job: crossing.value,
            _ITERATION + job: crossing.iteration,
            _ARRIVAL + job: crossing.arrival,
        }
    return remembered


def _changed(job: Job, crossing: Crossing) -> str:
    if job.target == crossing.value:
        return ""
    now = "taken back" if job.target is None else f"changed to {job.target:.4g}"
    return f"the target was {now} after it was crossed, which buys no second turn"


def _unreachable(job: Job, target: float, fitted: Fit, declared: Declared) -> str | None:
    """Returns why a run cannot reach its target; None: it may."""
    if declared.limit is not None:
        return f"is beyond the best value that it can have, {declared.limit:.4g}"
    total = job.iterations_total
    if total is None or fitted.last < UNREACHABLE_AFTER * total or declared.reach >= UNREACHABLE:
        return None
    converged = fitted.converged
    best = max(converged.low, converged.high) if job.metric.direction == "max" else min(converged.low, converged.high)
    if abs(target - fitted.start) <= FAR * abs(best - fitted.start):
        return None
    low, high = sorted((converged.low, converged.high))
    return f"is out of reach, for the run converges to {converged.median:.4g} ({low:.4g} to {high:.4g})"
