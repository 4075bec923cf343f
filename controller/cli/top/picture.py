"""What is known of a running controller at a moment: what its calls answer, and what has happened since. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controller.cli.top.contention import Load, interfaces_of, load_of
from controller.cli.top.paces import paces
from controller.wire import HistoryView, JobEvent, JobList, JobState, Network, PlanEvent, PlanView, Settings, Status


@dataclass(frozen=True, slots=True)
class Reading:
    """What the calls answered. None: the caller may not see it; of a plan also: there is none yet.

    ``jobs`` of None: the jobs were not asked for.
    """

    status: Status | None
    settings: Settings | None
    plan: PlanView | None
    network: Network | None
    history: HistoryView
    jobs: JobList | None


@dataclass(frozen=True, slots=True)
class InForce:
    """The plan in force. ``objective`` and ``bound`` are in seconds; None: not known. A tenant does not see ``epoch``.

    ``since`` is when it came into force, ``at_least`` a time at which it was in force already, by the clock of whoever
    looks; ``since`` of None: it was before ``at_least``. ``ports`` names the port where each job waits for longest, as
    it was read last.
    """

    policy: str
    epoch: int | None
    order: tuple[tuple[str, ...], ...]
    objective: float | None
    bound: float | None
    since: float | None
    at_least: float
    ports: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is shown. ``sent`` is what each job sends now, in bytes/s, where it is counted, and ``paces`` how many
    iterations a second it does.

    ``loads`` says for how long an iteration of each job keeps each port busy. What the caller may not see is None.
    """

    status: Status | None = None
    settings: Settings | None = None
    network: Network | None = None
    plan: InForce | None = None
    jobs: Mapping[str, JobState] = field(default_factory=dict)
    sent: Mapping[str, float] = field(default_factory=dict)
    paces: Mapping[str, float] = field(default_factory=dict)
    loads: Mapping[str, Load] = field(default_factory=dict)


def after_reading(before: Picture, reading: Reading, now: float) -> Picture:
    """Returns the picture after the controller was read at ``now``. Jobs stay as they were if none were asked for."""
    jobs = before.jobs if reading.jobs is None else {job.id: job for job in reading.jobs.jobs}
    loads = before.loads
    if reading.jobs is not None or reading.network != before.network:
        interfaces = interfaces_of(reading.network)
        loads = {name: load_of(job, interfaces) for name, job in jobs.items()}
    return Picture(
        status=reading.status,
        settings=reading.settings,
        network=reading.network,
        plan=before.plan if reading.plan is None else _in_force(before.plan, reading.plan, now),
        jobs=jobs,
        sent=_sent(reading.history),
        paces=paces(reading.history),
        loads=loads,
    )


def after_job(before: Picture, event: JobEvent) -> Picture:
    """Returns the picture after an event ``job``. One of a job that the picture does not have changes nothing."""
    known = before.jobs.get(event.id)
    if known is None:
        return before
    if event.progress is None:
        return replace(before, jobs={name: job for name, job in before.jobs.items() if name != event.id})
    changed = known.model_copy(
        update={
            "state": event.state,
            "iterations_done": event.progress.iterations_done,
            "last_metric": event.progress.last_metric,
            "last_report": event.progress.last_report,
            "diverged": event.progress.diverged,
            "ended_at": event.progress.ended_at,
            "service_class": event.service_class,
            "targets": event.targets,
        }
    )
    return replace(before, jobs={**before.jobs, event.id: changed})


def after_plan(before: Picture, event: PlanEvent, now: float) -> Picture:
    """Returns the picture after an event ``plan`` at ``now``."""
    known = before.plan
    is_other = known is None or event.epoch is None or known.epoch != event.epoch
    plan = InForce(
        policy=event.policy,
        epoch=event.epoch,
        order=event.order,
        objective=event.objective_seconds,
        bound=event.lower_bound_seconds,
        since=now if known is None or is_other else known.since,
        at_least=now if known is None or is_other else known.at_least,
        ports=known.ports if known is not None else {},
    )
    return replace(before, plan=plan)


def _in_force(known: InForce | None, plan: PlanView, now: float) -> InForce:
    is_other = known is None or known.epoch != plan.epoch
    return InForce(
        policy=plan.policy,
        epoch=plan.epoch,
        order=plan.order,
        objective=plan.objective_seconds,
        bound=plan.lower_bound_seconds,
        since=None if known is None else now if is_other else known.since,
        at_least=now - plan.age_seconds if known is None else now if is_other else known.at_least,
        ports={job: wait.port for job, wait in plan.waits.items()},
    )


def _sent(history: HistoryView) -> dict[str, float]:
    """Returns what each job sends now, from the newest step in which its bytes were counted."""
    newest = {name: [size for size in job.bytes if size is not None] for name, job in history.jobs.items()}
    return {name: sizes[-1] / history.step_seconds for name, sizes in newest.items() if sizes}
