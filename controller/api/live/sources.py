"""Turns what the parts of the controller tell into events.

The registry tells of each report's jobs, the loop of its turns and settings, the dataplane of switches, the audit of
records. None of them waits: they only leave a note. A green thread of its own looks at the notes, at most ten times a
second, and compares what was told with what is now.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import get_args

import eventlet
import eventlet.event

from controller.access.audit.record import Link
from controller.api.live.facts import (
    Facts,
    HostFacts,
    LinkFacts,
    asking_facts,
    description_facts,
    gone_switch,
    host_facts,
    job_facts,
    settings_facts,
    stage_facts,
    switches,
)
from controller.api.services import Services
from controller.events.changes import InForce, changed, jobs_of_change, plan_data, problem_data
from controller.events.event import Kind, Users
from controller.events.pace import Pace
from controller.events.repeated import Repeated
from controller.model import Host
from controller.pieces import Steps
from controller.registry.job.view import JobProgress
from controller.steps import Pause, in_steps

LOG = logging.getLogger("trainyard.events")
PAUSE_SECONDS = 0.1
"""Look for news at most so often. What happens meanwhile is sent together."""
LOOK_SECONDS = 1.0
"""Look at what nobody tells of, such as hosts that have become silent, so often."""
PROBLEMS_SECONDS = 5.0


class Sources:
    """Adds events to ``services.feed``. ``problems`` returns the sentences of ``GET /v1/status``."""

    def __init__(
        self,
        services: Services,
        problems: Callable[[Services], Sequence[str]],
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._services = services
        self._read_problems = problems
        self._clock = clock
        self._steady = steady
        self._jobs: Pace[Users] = Pace()
        """The jobs that have news, each with its user."""
        self._described = Repeated()
        """The jobs whose description was told."""
        self._in_force: InForce | None = None
        self._stages: dict[str, tuple[str, ...]] = services.registry.stages()
        self._users_of_stages = {stage: self._users(jobs) for stage, jobs in self._stages.items()}
        self._users_of_plan: Users = {}
        # A recording from the start on has all hosts and the settings, because none of them was told of yet.
        self._hosts: dict[str, HostFacts] = {}
        self._facts_of: dict[str, tuple[Sequence[Host], HostFacts]] = {}
        """The facts of each host that were made last, and the interfaces of which they are."""
        self._enrolments: dict[str, str] = {}
        self._switches: dict[str, Facts] = {}
        self._settings: Facts = {}
        self._problems: list[str] = []
        self._is_over = False
        self._next_look = self._next_problems = 0.0
        self._sent = services.feed.ring.newest
        """The id of the last event that the streams were woken for."""
        self._news = eventlet.event.Event()
        self._thread: eventlet.greenthread.GreenThread | None = None
        for kind in get_args(Kind):
            services.metrics.events.labels(event=kind)
        services.registry.subscribe_to_jobs(self._job_changed)
        services.loop.subscribe(self._loop_has_turned)
        services.dataplane.subscribe(lambda _reason: self._look_soon())
        services.audit.subscribe(self._recorded)

    def start(self) -> None:
        """Start to look."""
        self._thread = eventlet.spawn(self._run)

    def stop(self) -> None:
        """Look for a last time, tell all that still waits for its time, and end all streams."""
        self._is_over = True
        self._has_news()
        if self._thread is not None:
            self._thread.wait()
            self._thread = None
        self._turn()
        self._services.feed.close()

    def _run(self) -> None:
        while not self._is_over:
            with eventlet.Timeout(LOOK_SECONDS, False):
                self._news.wait()
            self._news = eventlet.event.Event()
            self._turn()
            eventlet.sleep(PAUSE_SECONDS)

    # What the parts tell.

    def _job_changed(self, job: str, user: str | None) -> None:
        before = self._jobs.waiting(job)
        if before is not None and before != {job: user}:  # whose job it was is told at once that it has none any more
            self._add("job", job_facts(job, None, None, ()), before)
        self._jobs.mark(job, {job: user})
        self._has_news()

    def _loop_has_turned(self) -> None:
        self._next_problems = 0.0
        self._look_soon()

    def _look_soon(self) -> None:
        self._next_look = 0.0
        self._has_news()

    def _recorded(self, link: Link) -> None:
        self._add("audit", dict(link.content))
        self._has_news()

    def _has_news(self) -> None:
        if not self._news.ready():
            self._news.send()

    # What becomes of it.

    def _turn(self) -> None:
        for tell in (self._tell_plan, self._tell_jobs, self._look):
            try:
                tell()
            except Exception:  # a fault in one event must not end all others
                LOG.exception("some events are missing")
        feed = self._services.feed
        if feed.ring.newest != self._sent:
            self._sent = feed.ring.newest
            feed.wake()

    def _tell_plan(self) -> None:
        loop = self._services.loop
        if loop.plan is None or (self._in_force is not None and self._in_force.plan is loop.plan):
            return
        before, self._in_force = self._in_force, InForce(loop.epoch, loop.plan)
        data = plan_data(before, self._in_force)
        if data is not None:
            users = self._users(job for band in data["order"] for job in band)
            if users != self._users_of_plan:  # else the events share them
                self._users_of_plan = users
            self._add("plan", data, self._users_of_plan)
        registry = self._services.registry
        for job in jobs_of_change(before, self._in_force):
            if registry.has_job(job):  # one that was removed has been told of, with the user that it had
                self._jobs.mark(job, {job: registry.job_user(job)})

    def _tell_jobs(self) -> None:
        plan = self._services.loop.plan
        predictions = plan.ordering.predictions if plan is not None else {}
        pause, faults = Pause(), []
        for job, users in self._jobs.rest() if self._is_over else self._jobs.due(self._steady()):
            pause()
            progress = self._services.registry.progress(job)
            service_class = self._services.loop.classes.get(job)
            try:
                facts = job_facts(job, progress, service_class, predictions.get(job, ()))
                facts |= self._description(job, progress)
                self._add("job", facts, {job: progress.user} if progress is not None else users)
            except Exception as fault:  # such as a prediction of another package's policy that is no number
                faults.append(fault)
        if faults:
            LOG.error("the events of %d jobs are missing", len(faults), exc_info=faults[0])

    def _description(self, job: str, progress: JobProgress | None) -> Facts:
        """Returns what a job is, where that is to be told now."""
        described = self._services.registry.description(job)
        if progress is None or described is None:
            self._described.forget(job)
            return {}
        is_due = self._described.is_due(
            job, (progress.state, described.spec, described.launcher, described.first_host), self._steady()
        )
        return {"description": description_facts(described)} if is_due else {}

    def _look(self) -> None:
        if not self._is_over and self._steady() < self._next_look:
            return
        self._next_look = self._steady() + LOOK_SECONDS
        services = self._services
        stages, before = services.registry.stages(), self._stages
        for stage, jobs in changed(before, stages):
            users = self._users_of_stages.pop(stage, {})  # those that it had may be gone from the registry
            if jobs is not None:
                self._users_of_stages[stage] = self._users(jobs)
                users = users | self._users_of_stages[stage]
            self._add("stage", stage_facts(stage, jobs, before.get(stage, ())), users)
        self._stages = stages
        hosts, pause = in_steps(self._present_hosts()), Pause()
        for host, state in changed(self._hosts, hosts):
            pause()
            self._add("host", host_facts(host, state))
        self._hosts = hosts
        waiting = self._present_enrolments()
        for host, word in changed(self._enrolments, waiting):
            if host not in hosts:
                self._add("host", asking_facts(host, word))
        self._enrolments = waiting
        present = switches(services.dataplane.status())
        for dpid, facts in changed(self._switches, present):
            self._add("switch", facts if facts is not None else gone_switch(self._switches[dpid]))
        self._switches = present
        settings = self._present_settings()
        if settings != self._settings:
            self._settings = settings
            self._add("settings", settings)
        if self._steady() >= self._next_problems:
            self._next_problems = self._steady() + PROBLEMS_SECONDS
            problems = list(self._read_problems(services))
            for data in problem_data(self._problems, problems):
                self._add("problem", data)
            self._problems = problems

    def _users(self, jobs: Iterable[str]) -> dict[str, str | None]:
        return {job: self._services.registry.job_user(job) for job in jobs}

    def _present_hosts(self) -> Steps[dict[str, HostFacts]]:
        registry = self._services.registry
        acknowledging = registry.acknowledging()
        known, self._facts_of = self._facts_of, {}
        present = {}
        for name, interfaces in registry.servers.items():
            state = registry.host_alive(name), name in acknowledging
            before = known.get(name)
            # Facts are made and compared at each look, and most of them stay.
            if before is None or before[0] is not interfaces or before[1][:2] != state:
                before = interfaces, _facts(interfaces, *state)
            self._facts_of[name] = before
            present[name] = before[1]
            yield
        return present

    def _present_enrolments(self) -> dict[str, str]:
        enrolments = self._services.hosts.enrolments
        return {each.name: each.state for each in enrolments if each.state != "approved"}

    def _present_settings(self) -> Facts:
        services, reloader = self._services, self._services.reloader
        sha256 = reloader.sha256 if reloader is not None else None
        return settings_facts(services.loop.settings.view(), sha256, services.config.classes, services.config.enforce)

    def _add(self, kind: Kind, data: Facts, users: Users = MappingProxyType({})) -> None:
        self._services.feed.ring.add(kind, self._clock(), data, users)
        self._services.metrics.events.labels(event=kind).inc()


def _facts(interfaces: Sequence[Host], is_alive: bool, marks_acknowledgements: bool) -> HostFacts:
    links = tuple(
        LinkFacts(
            host.interface or host.name,
            host.egress_bps,
            host.ingress_bps,
            f"{host.switch:016x}" if host.switch is not None else None,
            host.switch_port,
        )
        for host in interfaces
    )
    if len(links) == 1:
        return HostFacts(is_alive, marks_acknowledgements, *links[0][1:])
    egress_bps, ingress_bps = sum(link.egress_bps for link in links), sum(link.ingress_bps for link in links)
    return HostFacts(is_alive, marks_acknowledgements, egress_bps, ingress_bps, links=links)
