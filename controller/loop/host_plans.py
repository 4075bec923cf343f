"""Each host's marking plan, its epoch, and the agents that wait for the next one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping
from functools import partial
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, NamedTuple

import eventlet
import eventlet.event
import eventlet.tpool

from controller.code_points import CodePoints
from controller.config.current import CurrentSettings
from controller.config.sections import Floors
from controller.enforcement import Mode
from controller.memo import Memo
from controller.model import Host
from controller.pieces import Steps, whole
from controller.refusals import NotFound, Unavailable
from controller.rules.marking import AnyMark, FlowMark, PortMarks
from controller.rules.own_dscps.host_jobs import HostJob, HostJobs
from controller.steps import in_steps
from controller.wire import HostJob as HostJobBody
from controller.wire import HostPlan, InterfacePlan, Mark, ProtocolMark

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
    points: CodePoints
    floors: Floors
    interfaces: tuple[Host, ...]
    jobs: tuple[HostJob, ...]
    marks: tuple[AnyMark, ...]


class HostPlans:
    """The plans by host. A host's epoch changes only when its own marks do, over restarts too."""

    def __init__(self, current: CurrentSettings, remembered: Mapping[str, Any]) -> None:
        self._current = current
        self._is_paused = False
        self._epochs: dict[str, tuple[int, str]] = {
            host: (int(epoch), str(digest)) for host, (epoch, digest) in remembered.items() if host in current.servers
        }
        self._sources: dict[str, _Source] = {}
        self._ports: Memo[tuple[tuple[str, int], ...], bytes] = Memo(1024)
        self.earlier_agents: set[str] = set()
        """The hosts whose agents do not understand plans in which jobs have DSCPs of their own."""
        self.first_plan_seconds = FIRST_PLAN_SECONDS
        self._ready = False
        self._is_closed = False
        self._changed = eventlet.event.Event()

    def close(self) -> None:
        """Answer all waiting agents with the present plan, and let no agent wait any more."""
        self._is_closed = True
        self._wake_waiting()

    def heard_of(self, host: str, *, knows_job_dscps: bool) -> None:
        """Note whether the agent of a host understands plans in which jobs have DSCPs of their own."""
        if knows_job_dscps or host not in self._current.servers:
            self.earlier_agents.discard(host)
        else:
            self.earlier_agents.add(host)

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
        jobs: HostJobs = MappingProxyType({}),
        degraded: bool = False,
    ) -> bool:
        """Replace the marks of ``hosts`` (None: all) by a new plan's; returns whether any host's plan has changed.

        ``jobs`` are those of each host that have DSCPs of their own. ``degraded``: switches match marks, whatever the
        settings say.
        """
        config, known_hosts = self._current.config, self._current.servers
        mode: Mode = "marked" if degraded else config.enforcement.mode
        points = config.code_points
        any_changed = self._forget_all_but(known_hosts)
        for number, host in enumerate(known_hosts if hosts is None else hosts):
            if number % _AT_ONCE == _AT_ONCE - 1:
                eventlet.sleep(0)
            if host not in known_hosts:
                continue  # a reload has removed it since this plan was made
            own = jobs.get(host, ())
            source = _Source(policy, mode, points, config.floors, known_hosts[host], own, marks.get(host, ()))
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
        hosts = self._current.servers
        if host not in hosts:
            raise NotFound(f"there is no host {host}; there are: {', '.join(sorted(hosts)[:20]) or 'none'}")
        deadline = time.monotonic() + max(wait, 0.0 if self._ready else self.first_plan_seconds)
        while True:
            source = self._sources.get(host)
            if host not in self._current.servers:
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
            self.earlier_agents.discard(host)
        return bool(gone)

    def _digest(self, host: str, source: _Source) -> str:
        """Returns the digest that distinguishes plans. A job's ports are the same for many hosts, and digested once."""
        flow_marks = tuple(mark for mark in source.marks if isinstance(mark, FlowMark))
        plan = _plan(host, source, 0, whole(_on_the_wire(flow_marks)))
        digest = hashlib.sha256(plan.model_dump_json(exclude=plan.as_absent() | {"paused"}).encode())
        for mark in source.marks:
            if isinstance(mark, PortMarks):
                # Marks of TCP have the digest of earlier versions, so that an update changes no host's epoch.
                protocol = () if mark.protocol == "tcp" else (mark.protocol,)
                digest.update(repr((mark.job, mark.service_class, mark.dscp, *protocol)).encode())
                digest.update(self._ports.get(mark.ends, partial(_digest_of, mark.ends)))
        return digest.hexdigest()[:32]


def _plan(host: str, source: _Source, epoch: int, marks: tuple[Mark, ...]) -> HostPlan:
    return HostPlan(
        host=host,
        epoch=epoch,
        policy=source.policy,
        mode=source.mode,
        class_dscp=source.points.classes,
        acknowledgement_dscp=source.points.acknowledgements,
        other_dscp=source.points.other,
        # A program may set the DSCP of its own job, as a NIC with RDMA and a tunnel do.
        exclusive_dscp=tuple(sorted(source.points.exclusive - {job.dscp for job in source.jobs})),
        class_floor=source.floors.job_class,
        other_floor=source.floors.other,
        egress_bps=sum(host.egress_bps for host in source.interfaces),
        interfaces=_trees(source.interfaces),
        jobs=tuple(HostJobBody(**job._asdict()) for job in source.jobs),
        marks=tuple(mark for mark in marks if not isinstance(mark, ProtocolMark)),
        protocol_marks=tuple(mark for mark in marks if isinstance(mark, ProtocolMark)),
    )


def _trees(hosts: tuple[Host, ...]) -> tuple[InterfacePlan, ...]:
    """Returns the interfaces of a server that has several, as far as their names are known."""
    if len(hosts) == 1:
        return ()
    return tuple(
        InterfacePlan(name=host.interface, egress_bps=host.egress_bps) for host in hosts if host.interface is not None
    )


def _digest_of(ends: tuple[tuple[str, int], ...]) -> bytes:
    return hashlib.sha256(repr(ends).encode()).digest()


def _on_the_wire(marks: tuple[AnyMark, ...]) -> Steps[tuple[Mark, ...]]:
    """Returns the marks in the form of the API, with one mark a port; yields where others may go on."""
    each = chain.from_iterable(mark.each() if isinstance(mark, PortMarks) else (mark,) for mark in marks)
    converted: list[Mark] = []
    while step := tuple(islice(each, _MARKS_A_STEP)):
        converted += map(as_mark, step)
        yield
    return tuple(converted)


def as_mark(mark: FlowMark) -> Mark:
    """Returns a mark in the form of the API."""
    parts: dict[str, Any] = {
        "job": mark.job,
        "service_class": mark.service_class,
        "dscp": mark.dscp,
        "local_port": mark.local_port,
        "remote": mark.remote,
        "remote_port": mark.remote_port,
    }
    return Mark(**parts) if mark.protocol == "tcp" else ProtocolMark(**parts, protocol=mark.protocol)
