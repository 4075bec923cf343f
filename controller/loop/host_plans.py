"""Each host's marking plan, its epoch, and the agents that wait for the next one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import eventlet
import eventlet.event
import eventlet.tpool

from controller.config.current import CurrentSettings
from controller.config.sections import Floors
from controller.memo import Memo
from controller.model import CLASS_DSCP
from controller.pieces import Steps, whole
from controller.refusals import NotFound, Unavailable
from controller.rules.compiler import Mode
from controller.rules.marking import AnyMark, FlowMark, PortMarks
from controller.steps import in_steps
from controller.wire import HostPlan, Mark

FIRST_PLAN_SECONDS = 5.0
"""Hold a request for a host's plan back for this long where there has been no plan yet."""
_FEW_MARKS = 128
"""Compute the digest of a plan with more marks than this in another thread."""
_MARKS_A_STEP = 500
_AT_ONCE = 16
"""Let other work go on after the plans of this many hosts."""


class _Source(NamedTuple):
    """The parts of a host's plan. The plan itself is made when an agent asks for it, because a job's many ports would
    be in the plan of each of its many hosts."""

    policy: str
    mode: Mode
    classes: int
    floors: Floors
    egress_bps: float
    marks: tuple[AnyMark, ...]


class HostPlans:
    """The plans by host. A host's epoch changes only when its own marks do, over restarts too."""

    def __init__(self, current: CurrentSettings, remembered: Mapping[str, Any]) -> None:
        self._current = current
        self._is_paused = False
        self._epochs: dict[str, tuple[int, str]] = {
            host: (int(epoch), str(digest)) for host, (epoch, digest) in remembered.items() if host in current.hosts
        }
        self._sources: dict[str, _Source] = {}
        self._ports: Memo[tuple[tuple[str, int], ...], bytes] = Memo(1024)
        self.first_plan_seconds = FIRST_PLAN_SECONDS
        self._ready = False
        self._is_closed = False
        self._changed = eventlet.event.Event()

    def close(self) -> None:
        """Answer all waiting agents with the present plan, and let no agent wait any more."""
        self._is_closed = True
        self._wake_waiting()

    def set_paused(self, is_paused: bool) -> None:
        """Have all agents take away what they have installed, or install it again; wakes those that wait."""
        if is_paused != self._is_paused:
            self._is_paused = is_paused
            self._wake_waiting()

    def update(
        self,
        policy: str,
        marks: Mapping[str, tuple[AnyMark, ...]],
        hosts: Collection[str] | None = None,
        *,
        degraded: bool = False,
    ) -> bool:
        """Replace the marks of ``hosts`` (None: all) by a new plan's; returns whether any host's plan has changed.

        ``degraded``: switches match marks, whatever the settings say.
        """
        config, known_hosts = self._current.config, self._current.hosts
        mode: Mode = "marked" if degraded else config.mode
        any_changed = self._forget_all_but(known_hosts)
        for number, host in enumerate(known_hosts if hosts is None else hosts):
            if number % _AT_ONCE == _AT_ONCE - 1:
                eventlet.sleep(0)
            if host not in known_hosts:
                continue  # a reload has removed it since this plan was made
            rate = known_hosts[host].egress_bps
            source = _Source(policy, mode, config.classes, config.floors, rate, marks.get(host, ()))
            if self._sources.get(host) == source:
                continue
            if len(source.marks) <= _FEW_MARKS:
                digest = self._digest(host, source)
            else:
                digest = eventlet.tpool.execute(self._digest, host, source)
            epoch, known = self._epochs.get(host, (0, ""))
            self._sources[host] = source
            self._epochs[host] = (epoch + (digest != known), digest)
            any_changed = True
        if any_changed or not self._ready:
            self._ready = True
            self._wake_waiting()
        return any_changed

    def get(self, host: str, *, known: str | None = None, wait: float = 0.0) -> tuple[HostPlan | None, str]:
        """Returns a host's plan and its entity tag; waits up to ``wait`` seconds for one whose tag is not ``known``.

        The plan is None where its tag is known. Raises NotFound for an unknown host, and Unavailable while there has
        been no plan: an empty one would remove the marks, which a restart must not disturb.
        """
        hosts = self._current.hosts
        if host not in hosts:
            raise NotFound(f"there is no host {host}; there are: {', '.join(sorted(hosts)[:20]) or 'none'}")
        deadline = time.monotonic() + max(wait, 0.0 if self._ready else self.first_plan_seconds)
        while True:
            source = self._sources.get(host)
            if host not in self._current.hosts:
                raise NotFound(f"host {host} has been removed from the settings")
            if source is not None and (wait <= 0 or self._tag(host) != known):
                break
            left = deadline - time.monotonic()
            if left <= 0 or self._is_closed:
                break
            with eventlet.Timeout(left, False):
                self._changed.wait()
        if source is None:
            raise Unavailable("there is no plan yet; ask again in a second")
        tag, epoch, is_paused = self._tag(host), self._epochs[host][0], self._is_paused
        if tag == known:
            return None, tag
        # Others go on meanwhile, and may pause: the plan must be that of the tag all the same.
        made = _plan(host, source, epoch, in_steps(_on_the_wire(source.marks)))
        return made.model_copy(update={"paused": is_paused}), tag

    def record(self) -> dict[str, list[Any]]:
        """Returns the epochs, for the journal."""
        return {host: [epoch, digest] for host, (epoch, digest) in self._epochs.items()}

    def _wake_waiting(self) -> None:
        changed, self._changed = self._changed, eventlet.event.Event()
        changed.send()

    def _tag(self, host: str) -> str:
        # The digest is needed because a controller that has lost its journal counts the epochs from 1 again.
        epoch, digest = self._epochs[host]
        return f'"{epoch}-{digest[:16]}{"-paused" if self._is_paused else ""}"'

    def _forget_all_but(self, hosts: Collection[str]) -> bool:
        """Forget the plans of hosts that are gone. Returns whether there were any."""
        gone = self._sources.keys() - hosts
        for host in gone:
            del self._sources[host]
            self._epochs.pop(host, None)
        return bool(gone)

    def _digest(self, host: str, source: _Source) -> str:
        """Returns the digest that distinguishes plans. A job's ports are the same for many hosts, and digested once."""
        flow_marks = tuple(mark for mark in source.marks if isinstance(mark, FlowMark))
        plan = _plan(host, source, 0, whole(_on_the_wire(flow_marks)))
        digest = hashlib.sha256(plan.model_dump_json(exclude={"paused"}).encode())
        for mark in source.marks:
            if isinstance(mark, PortMarks):
                digest.update(repr((mark.job, mark.service_class, mark.dscp)).encode())
                digest.update(self._ports.get(mark.ends, partial(_digest_of, mark.ends)))
        return digest.hexdigest()[:32]


def _plan(host: str, source: _Source, epoch: int, marks: tuple[Mark, ...]) -> HostPlan:
    return HostPlan(
        host=host,
        epoch=epoch,
        policy=source.policy,
        mode=source.mode,
        class_dscp=CLASS_DSCP[: source.classes],
        class_floor=source.floors.job_class,
        other_floor=source.floors.other,
        egress_bps=source.egress_bps,
        marks=marks,
    )


def _digest_of(ends: tuple[tuple[str, int], ...]) -> bytes:
    return hashlib.sha256(repr(ends).encode()).digest()


def _on_the_wire(marks: tuple[AnyMark, ...]) -> Steps[tuple[Mark, ...]]:
    """Returns the marks in the form of the API, with one mark a port; yields where others may go on."""
    each = chain.from_iterable(mark.each() if isinstance(mark, PortMarks) else (mark,) for mark in marks)
    converted: list[Mark] = []
    while step := tuple(islice(each, _MARKS_A_STEP)):
        converted += [
            Mark(
                job=mark.job,
                service_class=mark.service_class,
                dscp=mark.dscp,
                local_port=mark.local_port,
                remote=mark.remote,
                remote_port=mark.remote_port,
            )
            for mark in step
        ]
        yield
    return tuple(converted)
