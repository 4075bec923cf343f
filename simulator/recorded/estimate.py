"""What a recording says of another policy: the jobs as observed, as simulated, and how far the two differ. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from simulator.recorded.jobs import MOST_ITERATIONS, RecordedWorkload
from simulator.recorded.recording import Recording
from simulator.reports.measures import Measures

COMPARED = ("jct", "t90", "t95")
"""The measures of a job that are compared."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure under the recorded policy: its means over the jobs that have it both ways, in seconds.

    ``shares`` has simulated / observed - 1 of each job.
    """

    observed: float
    simulated: float
    shares: Mapping[str, float]

    @property
    def of_mean(self) -> float:
        """The difference of the means, as a share of the observed one."""
        return self.simulated / self.observed - 1

    @property
    def of_a_job(self) -> float:
        """The median over the jobs of the difference, whichever way, as a share of what was observed."""
        return median(map(abs, self.shares.values()))


@dataclass(frozen=True, slots=True)
class Estimate:
    """``observed`` are the measures of the recording. ``runs`` are those of the simulations by policy.

    ``policy`` is what the network followed. It is not among the runs where it could not be simulated; ``why`` says so.
    ``limits`` says in a sentence what the simulated controller can do.
    """

    recording: Recording
    recorded: RecordedWorkload
    policy: str
    observed: Measures
    runs: Mapping[str, Measures]
    limits: str
    port_rate_bps: float
    why: str | None = None

    def error(self) -> dict[str, Difference]:
        """Returns how far the simulation of the recorded policy is from what was observed, by measure."""
        simulated = self.runs.get(self.policy)
        if simulated is None:
            return {}
        differences = {}
        for name in COMPARED:
            before, after = _by_job(self.observed, name), _by_job(simulated, name)
            pairs = {job: (before[job], after[job]) for job in before if job in after and before[job] > 0}
            if pairs:
                differences[name] = Difference(
                    observed=sum(seen for seen, _ in pairs.values()) / len(pairs),
                    simulated=sum(made for _, made in pairs.values()) / len(pairs),
                    shares={job: made / seen - 1 for job, (seen, made) in pairs.items()},
                )
        return differences

    def assumed(self) -> list[str]:
        """Returns what the estimate assumes, in sentences."""
        recording, jobs = self.recording, self.recorded.estimated
        sentences = [
            "jobs arrive when they did, and do as many iterations as were seen",
            "the bytes of an iteration are those that the job declares, or else those that hosts have measured",
            "workers wait for each other in each iteration; a job with parameter servers pushes, then pulls",
            self._computing(),
            self.limits,
        ]
        if len(recording.policies) > 1:
            all_followed = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in recording.policies.items())
            sentences.append(f"the network followed {self.policy} all the time; it was {all_followed}")
        if self.recorded.unknown_rates:
            names = _some(self.recorded.unknown_rates)
            sentences.append(
                f"the links of {names} have {self.port_rate_bps:g} bit/s, which the recording does not say"
            )
        if late := [name for name, each in jobs.items() if not each.is_whole]:
            sentences.append(f"{_some(late)}: only what the recording has of it counts, as if it were all")
        if long := [name for name, each in jobs.items() if each.iterations > MOST_ITERATIONS]:
            sentences.append(f"{_some(long)}: an iteration of the simulation stands for several")
        if recording.missed:
            sentences.append(f"{recording.missed} events are missing in the recording")
        if self.why is not None:
            sentences.append(self.why)
        return sentences

    def _computing(self) -> str:
        if self.why is not None:
            return (
                "an iteration computes for what its transfers alone leave of one in the fastest stretch, and no longer "
                "than the job declares"
            )
        return (
            f"an iteration computes for so long that the fastest stretch of its job, simulated under {self.policy}, "
            "takes as long as was observed, and no longer than the job declares"
        )

    def document(self) -> dict[str, Any]:
        """Returns the part of the JSON document that is about the recording."""
        return {
            "file": self.recording.source,
            "seconds": self.recording.seconds,
            "policy": self.policy,
            "observed": {f"mean_{name}_seconds": _mean(_by_job(self.observed, name)) for name in COMPARED},
            "error": {
                f"{name}_seconds": {
                    "observed": difference.observed,
                    "simulated": difference.simulated,
                    "difference": difference.of_mean,
                    "median_of_jobs": difference.of_a_job,
                    "jobs": len(difference.shares),
                }
                for name, difference in self.error().items()
            },
            "assumed": self.assumed(),
            "left_out": dict(self.recorded.left_out),
            "jobs": {name: self._job(name) for name in self.recorded.estimated},
        }

    def _job(self, name: str) -> dict[str, Any]:
        each = self.recorded.estimated[name]
        return {
            "arrival": each.job.arrival,
            "iterations": each.iterations,
            "bytes_per_iteration": each.bytes,
            "compute_seconds": each.compute_seconds,
            "whole": each.is_whole,
            "observed": {f"{measure}_seconds": _by_job(self.observed, measure).get(name) for measure in COMPARED},
            "simulated": {
                policy: {f"{measure}_seconds": _by_job(run, measure).get(name) for measure in COMPARED}
                for policy, run in self.runs.items()
            },
        }


def _by_job(measures: Measures, name: str) -> dict[str, float]:
    """Returns a measure of each job that has it."""
    values: Mapping[str, float | None] = getattr(measures, name)
    return {job: value for job, value in values.items() if value is not None}


def _mean(values: Mapping[str, float]) -> float | None:
    return sum(values.values()) / len(values) if values else None


def _some(names: tuple[str, ...] | list[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
