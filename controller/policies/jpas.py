"""JPAS: jobs that are early in training go first, so that more jobs reach a usable model sooner.

[known] P. Zhou, X. He, S. Luo, H. Yu, G. Sun: JPAS: Job-progress-aware flow scheduling for deep learning clusters,
Journal of Network and Computer Applications 158, 2020, doi:10.1016/j.jnca.2020.102590. There is a coordinator, and an
agent on each server. Agents read progress from job logs. Every period a greedy algorithm orders all jobs, those early
in training first. Hosts mark their flows, and the network serves them by their marks. The goal is the time until 90 %
or 95 % of the converged accuracy.

[ours] The text of the greedy algorithm is not public. Ours does this, every period T and at every event:

1. Each job's history is fitted (``controller.curves.fit``). The result is not one number of iterations left until 90 %
   (95 %) of convergence, but a distribution, which also gives the chance that a target is already reached.
2. A job's index is the best chance to reach the target, for each second of its own bottleneck port that is spent on it
   (``controller.curves.prospects``; where the run's length is not declared, the fit's chance over its mean iterations).
   For a sure prediction it is 1 / c_j, where c_j is the seconds that the iterations left take. Reaching 95 % counts
   ``weight_95`` times as much as reaching 90 %, and the end of the run ``weight_end`` times, so a job's index falls as
   it becomes more certain that the job has passed its targets. The job with the highest index goes first.
   A job that declares a target is judged by the time to that value instead of by reaching 90 %, unless it cannot be
   reached, or was crossed before it was declared (``controller.policies.parts.aims``). Then the end of the run counts
   ``weight_end_target`` times as much.
   Where earlier runs of a job's family predict each other, the chances go by them too (``controller.curves.earlier``).
3. A job with fewer than 3 reports has the index of the prior, or that of the earlier runs of its family. It is
   1 / its attained service where that is less, so a job that never reports gains nothing. If its length is not
   declared, it goes first until it has used ``new_job_seconds`` of bottleneck time, and is then ordered by attained
   service. So is a job whose length is not declared and whose fit is too uncertain (``uncertain``).
4. A job keeps its place until its index has changed by more than a margin, because predictions vary a little, and every
   move costs rules and marks.
5. A job that has diverged stands behind all others, by its attained service.
6. Ageing (``controller.policies.parts.ageing``): every W periods the job that has waited longest goes first for one
   period.

Variants compare other seconds than 1 / index. ``median`` has tiers (before 90 %, before 95 %, past both), and within
each tier c_j by the median prediction. ``gain`` takes c_j over the predicted progress toward the target, ``remaining``
the seconds left of the whole run, and ``attained`` the service used.

BSSI is not used here, because 1 / index is not a load: a job with nothing to gain would decide where the bottleneck is.
docs/decisions/jpas.md has the figures.

Cost: one fit for each job (0.2 ms; again when its history has grown by a twentieth, ``controller.curves.remembered``),
then O(n log n) for n jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple

import numpy as np

from controller.curves import fit
from controller.curves.earlier import EarlierRuns
from controller.curves.remembered import fits
from controller.families.earlier import earlier_runs
from controller.model import Job, Ordering, Snapshot
from controller.ordering.loads import Floats, load_matrix
from controller.ordering.service import attained
from controller.policies.base import Policy
from controller.policies.parts import aims
from controller.policies.parts.ageing import age
from controller.policies.parts.aims import Aim
from controller.policies.parts.options import MOST, Choice, Number, Whole
from controller.policies.parts.predictions import predictions
from controller.policies.parts.reasons import (
    COST,
    GAIN,
    LEFT,
    TO_TARGET,
    USED,
    iterations,
    neighbours,
    promoted_reason,
    reason,
)
from controller.quantities import duration, percent

_VARIANT = Choice(("index", "median", "gain", "remaining", "attained"))
_AMOUNT, _UNCERTAIN, _PERIODS = Number(), Number(above=True), Whole(1, int(MOST))

TARGETS = (fit.T90, fit.T95)
NEW, PAST = -1, len(TARGETS)
DIVERGED = PAST + 1
_PASSED, _KEPT = "passed:", "kept:"

PRIOR_DRAWS = 40
_LEAST_INDEX = 1e-12
_PAST_BOTH = f"it is past {percent(TARGETS[-1].fraction)} of convergence"


class Standing(NamedTuple):
    """A job's place: by tier, and within a tier by ``seconds`` of its bottleneck port, least first.

    The tiers are -1 for new jobs, 0 before 90 %, 1 before 95 %, 2 past both, and 3 for jobs that have diverged. A
    declared target takes the place of 90 %, and who has crossed it is past both. ``counted`` says what the seconds are,
    and ``why`` what they come from (``controller.policies.parts.reasons``). ``watch`` is the metric whose crossing ends
    the tier.
    """

    tier: int
    seconds: float
    counted: str
    why: str
    watch: float | None = None


class _Case(NamedTuple):
    """What decides the standing of a job: its fit, what it is judged by, its use of its bottleneck port in seconds.

    ``earlier``: the earlier runs of its family that may be used. ``passed`` counts the targets that the job has behind
    it.
    """

    job: Job
    fitted: fit.Fit | None
    aim: Aim
    earlier: EarlierRuns | None
    per_iteration: float
    used: float
    passed: int


class Jpas(Policy):
    """The highest chance of reaching the target accuracy for each second of network goes first.

    The module's docstring has the rule.
    """

    name = "jpas"

    def __init__(
        self,
        *,
        variant: Annotated[str, _VARIANT, "What jobs are compared by; index is the rule of this page."] = "index",
        new_job_seconds: Annotated[
            float, _AMOUNT, "How long a new job of unknown length goes first, in seconds."
        ] = 5.0,
        uncertain: Annotated[
            float, _UNCERTAIN, "Ignore a fit whose interval is wider than this many times the median of what is left."
        ] = 10.0,
        weight_95: Annotated[float, _AMOUNT, "What reaching 95 % counts against reaching 90 %."] = 0.05,
        weight_end: Annotated[float, _AMOUNT, "What the end of the run counts against reaching 90 %."] = 0.1,
        weight_end_target: Annotated[
            float, _AMOUNT, "The same for a job that is judged by a target that it declares."
        ] = 0.3,
        ageing_periods: Annotated[
            int, _PERIODS, "After how many periods the job that has waited longest goes first."
        ] = 20,
        margin: Annotated[float, _AMOUNT, "Keep a job's place until its prediction differs by this share."] = 0.05,
    ) -> None:
        self.variant = _VARIANT.check("variant", variant)
        self.new_job_seconds = _AMOUNT.check("new_job_seconds", new_job_seconds)
        self.uncertain = _UNCERTAIN.check("uncertain", uncertain)
        self.weight_95 = _AMOUNT.check("weight_95", weight_95)
        self.weight_end = _AMOUNT.check("weight_end", weight_end)
        self.weight_end_target = _AMOUNT.check("weight_end_target", weight_end_target)
        self.ageing_periods = _PERIODS.check("ageing_periods", ageing_periods)
        self.margin = _AMOUNT.check("margin", margin)

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders the jobs of ``snapshot``; the memory holds their places, waits, and targets passed and crossed."""
        memory = previous.memory if previous is not None else {}
        snapshot = replace(snapshot, jobs=tuple(sorted(snapshot.jobs, key=lambda job: (job.arrival, job.id))))
        jobs = {job.id: job for job in snapshot.jobs}
        bottlenecks = load_matrix(snapshot).bottlenecks()
        remembered = aims.crossings(snapshot.jobs, memory)
        earlier = [earlier_runs(job) for job in snapshot.jobs]
        judged = aims.judged(snapshot.jobs, remembered)
        known = fits(judged, earlier)
        judged_by = {
            job.id: aims.aim(
                job,
                fitted,
                remembered.get(job.id),
                in_time=aims.is_in_time(job, memory, is_known=_KEPT + job.id in memory),
            )
            for job, fitted in zip(snapshot.jobs, known, strict=True)
        }
        service = self._service(snapshot, bottlenecks, known)
        passed = _passed(snapshot.jobs, known, judged_by, memory)
        standings = {
            job.id: self._standing(_Case(job, fitted, judged_by[job.id], runs, bottleneck, used, passed[job.id]))
            for job, fitted, runs, bottleneck, used in zip(
                snapshot.jobs, known, earlier, bottlenecks.tolist(), service.tolist(), strict=True
            )
        }
        kept = {
            name: self._stable(memory.get(_KEPT + name), standing.seconds / jobs[name].weight)
            for name, standing in standings.items()
        }
        order = sorted(standings, key=lambda job: (standings[job].tier, kept[job]))
        aged = age(order, jobs, memory, now=snapshot.now, period=snapshot.period, periods=self.ageing_periods)
        beside = neighbours(order, {name: standing.tier for name, standing in standings.items()}, kept)
        reasons = {
            job: reason(standing.counted, kept[job], jobs[job].weight, standing.why, beside.get(job, ""))
            for job, standing in standings.items()
        }
        if aged.promoted is not None:
            reasons[aged.promoted] = promoted_reason(reasons[aged.promoted], aged.waited_seconds)
        return Ordering(
            policy=self.name,
            bands=tuple((job,) for job in aged.order),
            reasons=reasons,
            memory={
                **aged.memory,
                **aims.to_memory({job: own.crossing for job, own in judged_by.items() if own.crossing is not None}),
                **aims.open_targets(snapshot.jobs, known, judged_by),
                **{_PASSED + job: float(targets) for job, targets in passed.items() if targets},
                **{_KEPT + job: seconds for job, seconds in kept.items()},
            },
            # Ageing and new fits happen once in a period.
            until=snapshot.now + snapshot.period,
            watch={job: standing.watch for job, standing in standings.items() if standing.watch is not None},
            predictions={
                job.id: predictions(job, fitted, None if judged_by[job.id].is_declared else passed[job.id])
                for job, fitted in zip(judged, known, strict=True)
                if fitted is not None
            },
        )

    def _service(self, snapshot: Snapshot, bottlenecks: Floats, known: Sequence[fit.Fit | None]) -> Floats:
        """Returns the seconds of its bottleneck port that each job has used; 0 where no rule needs them."""
        needed = [
            i
            for i, (job, fitted) in enumerate(zip(snapshot.jobs, known, strict=True))
            if fitted is None or job.diverged or not self._trusts_fit(job)
        ]
        service = np.zeros(len(snapshot.jobs))
        service[needed] = attained(replace(snapshot, jobs=tuple(snapshot.jobs[i] for i in needed)), bottlenecks[needed])
        return service

    def _trusts_fit(self, job: Job) -> bool:
        """Returns whether the job's fit is used however wide its interval is."""
        return self.variant == "index" and job.iterations_total is not None

    def _stable(self, before: float | None, now: float) -> float:
        """Returns the seconds over weight that decide a job's place: those before if they changed within the margin."""
        return before if before is not None and abs(now - before) <= self.margin * before else now

    def _standing(self, case: _Case) -> Standing:
        job, fitted, aim, _, per_iteration, used, passed = case
        if job.diverged:
            return _by_service(used, "it diverged, so it goes behind all jobs that did not", DIVERGED)
        if self.variant == "attained":
            return _by_service(used, "")
        if self.variant == "remaining":
            return Standing(0, per_iteration * job.iterations_left, LEFT, "")
        if fitted is None:
            # Who has crossed a target is not new, whatever is left of its history.
            is_new = aim.crossing is None
            return self._unreported(case) if is_new else _by_service(used, _past(job, aim))
        return self._past_targets(case, fitted) if passed == PAST else self._before_target(case, fitted)

    def _unreported(self, case: _Case) -> Standing:
        """Returns the standing of a job with too few reports for a fit.

        It goes by earlier runs of its family or by the prior where the run's length is declared, and else first for a
        while.
        """
        job, earlier, per_iteration, used = case.job, case.earlier, case.per_iteration, case.used
        reports = sum(point.metric is not None for point in job.progress)
        by_service = _by_service(used, f"only {reports} of the {fit.MIN_POINTS} reports that a prediction needs")
        if self.variant == "index" and job.iterations_total is not None and per_iteration > 0:
            # Service counts as iterations, reported or not, so that a silent job does not stay new.
            done = max(job.iterations_done, min(used / per_iteration, job.iterations_total - 1.0))
            spec = TARGETS[0] if earlier is None else earlier.t90
            left = job.iterations_total * spec.shares(PRIOR_DRAWS) - done
            ahead = left[left > 0]
            mean = float(ahead.mean()) if len(ahead) else 0.0
            index = len(ahead) / len(left) / max(mean, 1.0)
            expected = per_iteration / max(index, _LEAST_INDEX)
            if expected > used:
                what = "its length alone" if earlier is None else f"{earlier.count} earlier runs of its family"
                return Standing(0, expected, COST, f"it is new, so this is estimated from {what}")
            return by_service
        if used < self.new_job_seconds:
            why = f"it is new, so it goes before jobs that are not until it has used {duration(self.new_job_seconds)}"
            return Standing(NEW, used, USED, why)
        return by_service

    def _past_targets(self, case: _Case, fitted: fit.Fit) -> Standing:
        left = case.per_iteration * case.job.iterations_left
        why = _past(case.job, case.aim)
        if self.variant == "index":
            worth = f"{self._weight_of_end(case):g} of a milestone"
            why = f"{why}, so its end counts: {duration(left)} of that port for {worth}"
            return Standing(0, self._index_seconds(case, fitted), COST, why)
        return Standing(PAST, left, LEFT, f"{why}, so it goes behind jobs that are not")

    def _before_target(self, case: _Case, fitted: fit.Fit) -> Standing:
        job, _, aim, _, per_iteration, used, passed = case
        iteration, metric, what = _next_target(job, fitted, aim, passed)
        done = job.iterations_done
        left, low, high = (max(k - done, 1.0) for k in (iteration.median, iteration.low, iteration.high))
        tier = 0 if self.variant == "index" else passed
        note = f"{aim.note}; " if aim.note else ""
        if high - low > self.uncertain * left and not self._trusts_fit(job):
            why = f"{note}the prediction is too uncertain: {what} in {low:.0f} to {high:.0f} iterations"
            return _by_service(used, why, tier, metric)
        seconds = per_iteration * left
        why = (
            f"{note}by its curve, the next is {what} ({job.metric.name} {metric:.4g}) in {iterations(left)} "
            f"({low:.0f} to {high:.0f}), {duration(seconds)} of that port"
        )
        if self.variant == "median":
            return Standing(tier, seconds, TO_TARGET, why, metric)
        if self.variant == "gain":
            latest = next((p.metric for p in reversed(job.progress) if p.metric is not None), metric)
            gain = max(abs(metric - latest) / max(abs(metric), 1e-12), 1e-6)
            return Standing(tier, seconds / gain, GAIN, f"{why}, {percent(gain, 1)} of the target to gain", metric)
        runs = f", by {case.earlier.count} earlier runs" if case.earlier is not None and fitted.by_family else ""
        return Standing(0, self._index_seconds(case, fitted), COST, f"{why}{runs}", metric)

    def _index_seconds(self, case: _Case, fitted: fit.Fit) -> float:
        """Returns 1 / the index: the seconds of the bottleneck port for each target that is expected to be reached."""
        weights = (1.0, self.weight_95)
        first, *others = (target.rate for target in fitted.targets)
        declared = case.aim.declared
        rates = (first if declared is None else declared.rate, *others)
        total = sum(weight * rate for weight, rate in zip(weights, rates, strict=True))
        total += self._weight_of_end(case) / max(case.job.iterations_left, 1.0)
        return case.per_iteration / max(total, _LEAST_INDEX)

    def _weight_of_end(self, case: _Case) -> float:
        """Returns what the end of the run counts against reaching 90 %, or the target that the job declares."""
        return self.weight_end_target if case.aim.is_declared else self.weight_end


def _next_target(job: Job, fitted: fit.Fit, aim: Aim, passed: int) -> tuple[fit.Estimate, float, str]:
    """Returns the target that a job is before: its iteration, its metric, and its name in a sentence."""
    if aim.declared is not None and job.target is not None:
        return aim.declared.iteration, job.target, "its target"
    target = fitted.targets[passed]
    return target.iteration, target.metric, f"{percent(target.fraction)} of convergence"


def _past(job: Job, aim: Aim) -> str:
    """Returns the words for what a job has behind it."""
    if aim.crossing is None:
        return f"{aim.note}; {_PAST_BOTH}" if aim.note else _PAST_BOTH
    crossing = aim.crossing
    why = (
        f"it is past its target ({job.metric.name} {crossing.value:.4g}), crossed at iteration {crossing.iteration:.0f}"
    )
    return f"{why}; {aim.note}" if aim.note else why


def _by_service(used: float, why: str, tier: int = 0, watch: float | None = None) -> Standing:
    """Returns a standing by attained service: what a job has used is the best estimate of what it still needs."""
    return Standing(tier, used, USED, why, watch)


def _targets_passed(fitted: fit.Fit, before: float) -> int:
    """Returns how many targets a job has passed. A target stays passed unless the fit now makes that unlikely."""
    for passed, target in enumerate(fitted.targets):
        if target.crossed < (0.2 if passed < before else 0.5):
            return passed
    return PAST


def _passed(
    jobs: Iterable[Job], known: Iterable[fit.Fit | None], judged_by: Mapping[str, Aim], memory: Mapping[str, float]
) -> dict[str, int]:
    """Returns how many targets each job has passed: of a declared one all or none."""
    passed = {}
    for job, fitted in zip(jobs, known, strict=True):
        aim = judged_by[job.id]
        if aim.is_declared:
            passed[job.id] = PAST if aim.crossing is not None else 0
        else:
            passed[job.id] = 0 if fitted is None else _targets_passed(fitted, memory.get(_PASSED + job.id, 0.0))
    return passed
