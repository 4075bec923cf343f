"""JPAS: jobs that are early in training go first, so that more jobs reach a usable model sooner.

[known] P. Zhou, X. He, S. Luo, H. Yu, G. Sun: JPAS: Job-progress-aware flow scheduling for deep learning clusters,
Journal of Network and Computer Applications 158, 2020, doi:10.1016/j.jnca.2020.102590. A coordinator and an agent a
server; progress is read from job logs; every period a greedy orders all jobs, those early in training first; hosts
mark their flows, the network does the rest. The goal is the time until 90 % or 95 % of the converged accuracy.

[ours] The text of the greedy is not public; ours is, every period T and at every event:

1. Fit each job's history (``controller.curves``) and take the iterations left until 90 % of convergence; once
   that is passed until 95 %; once that is passed, all iterations left.
2. c_j = the seconds of the job's own bottleneck port that these iterations take. Jobs before 90 % come first, then
   jobs before 95 %, then the rest; within each by the kernel: ``bssi`` (over all ports) or ``shortest`` (least c_j).
3. A job with fewer than 3 reports comes first of all, but for at most ``new_job_seconds`` of bottleneck time; then
   c_j is its attained service, so a job that never reports gains nothing. The same where the fit is too uncertain.
4. Ageing (``controller.policies._ageing``): every W periods the longest wait is ended for one period.

Variants, by what takes the place of step 1 and 2: ``gain`` orders by predicted progress toward the target per second of
bottleneck, ``remaining`` by all that a job has left, ``attained`` by what it has used.

Cost: one fit a job (a millisecond, remembered until the history changes), then that of the kernel, O(n (n + m)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from controller import curves
from controller.bssi import bssi
from controller.model import Host, Job, Metric, Ordering, Progress, Snapshot, bottleneck_seconds, load_seconds
from controller.policies._ageing import age
from controller.policies._base import Policy
from controller.service import attained_seconds

Variant = Literal["target", "gain", "remaining", "attained"]
Kernel = Literal["bssi", "shortest"]

TARGETS = (0.9, 0.95)
NEW, PAST = -1, len(TARGETS)
_PASSED = "passed:"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands: tier (-1 new, 0 before 90 %, 1 before 95 %, 2 past both) and the iterations that count.

    ``seconds`` is what they take at the job's bottleneck port; ``watch`` is the metric that ends the tier.
    """

    job: Job
    tier: int
    iterations: float
    seconds: float
    why: str
    watch: float | None = None


class Jpas(Policy):
    """Order by what is left until the target; see the module for the rule.

    ``uncertain``: a fit is not believed where the 80 % interval of the iterations left is wider than this many times
    its median. ``ageing_periods`` is W.
    """

    name = "jpas"

    def __init__(
        self,
        variant: Variant = "target",
        kernel: Kernel = "bssi",
        new_job_seconds: float = 5.0,
        uncertain: float = 4.0,
        ageing_periods: int = 20,
    ) -> None:
        _one_of("variant", variant, get_args(Variant))
        _one_of("kernel", kernel, get_args(Kernel))
        if not new_job_seconds >= 0:
            raise ValueError(f"new_job_seconds: {new_job_seconds}; it must be 0 or more")
        if not uncertain > 0:
            raise ValueError(f"uncertain: {uncertain}; it must be above 0")
        if not (isinstance(ageing_periods, int) and ageing_periods >= 1):
            raise ValueError(f"ageing_periods: {ageing_periods}; it must be a whole number of at least 1")
        self.variant = variant
        self.kernel = kernel
        self.new_job_seconds = new_job_seconds
        self.uncertain = uncertain
        self.ageing_periods = ageing_periods

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Order the jobs of ``snapshot``; the memory holds targets passed and waits."""
        memory = previous.memory if previous is not None else {}
        standings = {job.id: self._standing(job, snapshot.hosts, memory) for job in snapshot.jobs}
        order = self._sorted(list(standings.values()), snapshot.hosts)
        jobs = {job.id: job for job in snapshot.jobs}
        aged = age(order, jobs, memory, now=snapshot.now, period=snapshot.period, periods=self.ageing_periods)
        reasons = {job: standing.why for job, standing in standings.items()}
        if aged.promoted is not None:
            reasons[aged.promoted] += (
                f"; ageing: it had not held the first class for {aged.waited_seconds:.1f} s, so it does for one period"
            )
        passed = {_PASSED + job: float(standing.tier) for job, standing in standings.items() if standing.tier > 0}
        return Ordering(
            policy=self.name,
            bands=tuple((job,) for job in aged.order),
            reasons=reasons,
            memory={**aged.memory, **passed},
            watch={job: standing.watch for job, standing in standings.items() if standing.watch is not None},
        )

    def _standing(self, job: Job, hosts: Mapping[str, Host], memory: Mapping[str, float]) -> Standing:
        per_iteration = bottleneck_seconds(load_seconds(job, hosts))
        used = attained_seconds(job, hosts)
        if self.variant == "attained":
            return _by_service(job, 0, used, per_iteration, "least attained service")
        if self.variant == "remaining":
            seconds = per_iteration * job.iterations_left
            return Standing(job, 0, job.iterations_left, seconds, f"{seconds:.1f} s of its bottleneck port left in all")
        fitted = _fit(job.progress, job.metric, job.iterations_total)
        if fitted is None:
            reports = sum(point.metric is not None for point in job.progress)
            if used < self.new_job_seconds:
                why = f"new: {reports} of {curves.MIN_POINTS} reports that a fit needs, {used:.1f} s of service used"
                return Standing(job, NEW, 0.0, used, why)
            return _by_service(job, 0, used, per_iteration, f"only {reports} reports")
        tier = _tier(fitted, int(memory.get(_PASSED + job.id, 0.0)))
        if tier == PAST:
            seconds = per_iteration * job.iterations_left
            why = f"past {TARGETS[-1]:.0%} of convergence; {seconds:.1f} s of its bottleneck port left in all"
            return Standing(job, tier, job.iterations_left, seconds, why)
        return self._before_target(job, tier, fitted.targets[tier], per_iteration, used)

    def _before_target(
        self, job: Job, tier: int, target: curves.Target, per_iteration: float, used: float
    ) -> Standing:
        done = job.iterations_done
        left = max(target.iteration.median - done, 1.0)
        low, high = max(target.iteration.low - done, 1.0), max(target.iteration.high - done, 1.0)
        if high - low > self.uncertain * left:
            why = f"uncertain: {low:.0f} to {high:.0f} iterations to {target.fraction:.0%} of convergence"
            return _by_service(job, tier, used, per_iteration, why, target.metric)
        seconds = per_iteration * left
        why = (
            f"{target.fraction:.0%} of convergence ({job.metric.name} {target.metric:.4g}) in {left:.0f} iterations "
            f"({low:.0f} to {high:.0f}): {seconds:.1f} s of its bottleneck port"
        )
        if self.variant == "gain":
            now_at = next((p.metric for p in reversed(job.progress) if p.metric is not None), target.metric)
            gain = max(abs(target.metric - now_at) / max(abs(target.metric), 1e-12), 1e-6)
            return Standing(job, tier, left / gain, seconds / gain, f"{why}, {gain:.1%} of it to gain", target.metric)
        return Standing(job, tier, left, seconds, why, target.metric)

    def _sorted(self, standings: Sequence[Standing], hosts: Mapping[str, Host]) -> list[str]:
        """Job ids, first served first: by tier, within a tier by the kernel."""
        order: list[str] = []
        for tier in sorted({standing.tier for standing in standings}):
            members = sorted(
                (standing for standing in standings if standing.tier == tier),
                key=lambda standing: (standing.seconds / standing.job.weight, standing.job.arrival, standing.job.id),
            )
            if self.kernel == "bssi" and tier != NEW:
                loads = [
                    {port: load * member.iterations for port, load in load_seconds(member.job, hosts).items()}
                    for member in members
                ]
                ranked = bssi(loads, [member.job.weight for member in members]).order
                members = [members[position] for position in ranked]
            order += [member.job.id for member in members]
        return order


def _by_service(
    job: Job, tier: int, used: float, per_iteration: float, why: str, watch: float | None = None
) -> Standing:
    """A standing by attained service: what a job has used is the best guess of what it still needs."""
    iterations = used / per_iteration if per_iteration > 0 else 0.0
    return Standing(job, tier, iterations, used, f"{why}: by its attained service, {used:.1f} s", watch)


def _tier(fitted: curves.Fit, before: int) -> int:
    """The first target that is not passed yet. A target once passed stays so unless the fit now denies it."""
    for tier, target in enumerate(fitted.targets):
        if target.crossed < (0.2 if tier < before else 0.5):
            return tier
    return PAST


@lru_cache(maxsize=4096)
def _fit(progress: tuple[Progress, ...], metric: Metric, total: float | None) -> curves.Fit | None:
    """A fit is a pure function of the history, so it is remembered until the history grows."""
    return curves.fit(progress, metric, total, TARGETS)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}: {value!r}; it must be one of {', '.join(allowed)}")
