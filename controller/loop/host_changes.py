"""Puts hosts that enrol in force: who is approved takes part from the next plan on, and who is removed no more.

The registry, the switches and the plans of hosts take the difference alone, as after a reload. So a new host costs the
others no rule.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

import eventlet
import eventlet.greenthread

from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.enrolment.enrolments import Bounds, Enrolments
from controller.enrolment.listed import Listed
from controller.enrolment.record import Enrolment, Site, within
from controller.loop.loop import Loop
from controller.model import Host, endpoint
from controller.refusals import Conflict, Invalid
from controller.registry.registry import Registry
from controller.registry.triggers import Trigger
from controller.wire import HostDecision, HostRequest
from controller.wire.announcement import Announcement

LOG = logging.getLogger("trainyard.hosts")
CHECK_SECONDS, CHECK_FOR_SECONDS = 300.0, 30.0
"""Once in the first time, have switches hand on announcements for the second: a host may have another cable by now."""
LISTEN_SECONDS = 2.0
"""Tell switches so often whether hosts are looked for. They send a bounded number of packets in that time."""
AT_ONCE = "at-once"
"""Has decided where the settings approve hosts without an operator."""
_MOST_NAMES = 10


class HostChanges:
    """Hosts that ask, and what operators decide on them.

    ``change_dataplane`` has the switches take other hosts. ``listen`` tells them whether hosts are looked for.
    """

    def __init__(
        self,
        enrolments: Enrolments,
        registry: Registry,
        current: CurrentSettings,
        loop: Loop,
        *,
        change_dataplane: Callable[[Config, Mapping[str, Host]], None] = lambda _config, _hosts: None,
        listen: Callable[[bool], None] = lambda _is_listening: None,
    ) -> None:
        self.enrolments = enrolments
        self._registry = registry
        self._current = current
        self._loop = loop
        self._change_dataplane = change_dataplane
        self._listen = listen
        self._listed: tuple[Config, Listed] | None = None
        self._check_at = time.monotonic()
        self._thread: eventlet.greenthread.GreenThread | None = None

    @property
    def listed(self) -> Listed:
        """What the settings in force give to hosts."""
        config = self._current.config
        if self._listed is None or self._listed[0] is not config:
            self._listed = (config, Listed.of(config))
        return self._listed[1]

    def start(self) -> None:
        """Start to look for hosts, whenever one is looked for."""
        self._thread = eventlet.spawn(self._run)

    def stop(self) -> None:
        """Look for no hosts any more."""
        if self._thread is not None:
            self._thread.kill()
            self._thread = None

    def ask(self, name: str, request: HostRequest, asked_from: str) -> Enrolment:
        """A host asks; ``asked_from`` is its IP address. Returns what is known of it then.

        Raises Conflict where enrolment is off or the host cannot be added, and Invalid for an address that is not
        allowed.
        """
        settings = self._current.config.enrolment
        if settings is None:
            raise Conflict("the settings let no host enrol; an operator sets enrolment, or lists the host")
        asked = request.addresses[:1] or request.links[0].addresses
        if not any(map(settings.allows, asked)):
            field = "request.addresses.0" if request.addresses else "request.links.0.addresses"
            raise Invalid([(field, f"{asked[0]} is in none of the networks of hosts that may enrol")])
        request = within(request, settings.allows)
        bounds = Bounds(settings.most_waiting, settings.most_waiting_per_address)
        enrolment = self.enrolments.ask(name, request, asked_from, self.listed, bounds)
        if enrolment.state == "pending" and self.why_not_at_once(enrolment, asked_from) is None:
            return self.decide(name, HostDecision(state="approved"), AT_ONCE)
        return enrolment

    def why_not_at_once(self, enrolment: Enrolment, asked_from: str) -> str | None:
        """Returns why a host waits for an operator; None: the settings approve it."""
        settings = self._current.config.enrolment
        if settings is None or settings.approve != AT_ONCE:
            return "an operator decides"
        if asked_from.removeprefix("::ffff:") not in enrolment.addresses:
            return f"an operator decides: it has asked from {asked_from}, which is none of its addresses"
        if self.enrolments.has_rivals(enrolment):
            return "an operator decides: another host asks for the same"
        obstacle = self.enrolments.obstacle(enrolment, self.listed)
        return f"an operator decides: {obstacle}" if obstacle is not None else None

    def problems(self, enrolment: Enrolment) -> tuple[str, ...]:
        """Returns what an operator should know of a host that has asked."""
        known = self.enrolments.problems(enrolment, self.listed)
        settings = self._current.config.enrolment
        is_by_hand = settings is None or settings.approve != AT_ONCE or enrolment.state != "pending"
        why = None if is_by_hand or known else self.why_not_at_once(enrolment, enrolment.asked_from)
        return (*known, why) if why is not None else known

    def decide(self, name: str, decision: HostDecision, by: str) -> Enrolment:
        """Approve or refuse a host. Raises NotFound and Conflict as ``Enrolments.decide``."""
        if name in self.listed.names:
            raise Conflict(f"{name} is a host of the settings, which needs no decision")
        decided = self.enrolments.decide(name, decision, by, self.listed)
        if decided.state == "approved":
            self._apply()
        return decided

    def remove(self, name: str, received_at: float, *, is_forced: bool) -> None:
        """Forget a host, and its agent.

        Raises NotFound, and Conflict where jobs run there. ``is_forced`` removes these jobs, too.
        """
        if name in self.listed.names and self.enrolments.get(name) is None:
            raise Conflict(f"{name} is a host of the settings; remove it there, and reload")

        def change() -> None:
            if name not in self.listed.names:
                self._end_jobs(name, received_at, is_forced=is_forced)
                self._registry.forget_agent(name)
            self.enrolments.remove(name)
            self._follow()

        self.enrolments.find(name)
        self._loop.between_plans(change)
        self._loop.trigger(Trigger.HOSTS, received_at)

    def announced(self, dpid: int, port: int, announcement: Announcement) -> None:
        """A host has announced itself at a port of a switch: that is where it is, unless an operator has said so."""
        moves = self.enrolments.locate(announcement.secret, announcement.mac, Site(dpid, port), self.listed)
        for host, interface, before, site in moves:
            name = endpoint(host.name, interface)
            if before is None:
                LOG.info("host %s has announced itself at %s", name, site)
            else:
                LOG.warning("host %s has another cable: it was at %s, and is at %s", name, before, site)
        if any(move.host.state == "approved" for move in moves):
            # In a thread of its own: it waits for the plan that is being made, and whoever reads a switch must not.
            eventlet.spawn_n(self._apply)

    def check_soon(self) -> None:
        """A port of a switch has changed, or a switch has come: a host may have another cable."""
        self._check_at = time.monotonic()

    def _is_checking(self, now: float) -> bool:
        """Returns whether it is time to hear of hosts that are elsewhere by now."""
        if now >= self._check_at + CHECK_FOR_SECONDS:
            self._check_at = now + CHECK_SECONDS
        return now >= self._check_at

    def _end_jobs(self, host: str, received_at: float, *, is_forced: bool) -> None:
        jobs = self._registry.jobs_on([host]).get(host, [])
        if jobs and not is_forced:
            more = f" and {len(jobs) - _MOST_NAMES} more" if len(jobs) > _MOST_NAMES else ""
            raise Conflict(
                f"jobs run on {host}: {', '.join(jobs[:_MOST_NAMES])}{more}; let them end, or force it, which removes "
                "them, too"
            )
        for job in jobs:
            self._registry.delete_job(job, received_at)

    def _apply(self) -> None:
        self._loop.between_plans(self._follow)
        self._loop.trigger(Trigger.HOSTS, time.monotonic())

    def _follow(self) -> None:
        config = self._current.config
        self._current.put(config)
        self._registry.change_hosts(self._current.hosts, config.lease_seconds)
        self._change_dataplane(config, self._current.hosts)

    def _run(self) -> None:
        while True:
            try:
                if self._current.config.enrolment is not None:
                    self._listen(self.enrolments.are_looked_for or self._is_checking(time.monotonic()))
            except Exception:  # a switch's fault must not end the look
                LOG.exception("switches could not be told whether hosts are looked for")
            eventlet.sleep(LISTEN_SECONDS)
