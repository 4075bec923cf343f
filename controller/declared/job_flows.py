"""From a job's declaration to the flows and the ports that it claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol

from controller.model import NO_LISTENERS, Listeners

Endpoint = tuple[str, int]
"""A host and a TCP port on it."""

MOST_PROBLEMS = 50
"""Report this many faults of a job at a time, at most."""

FEW_FLOWS = 128
"""Give each flow to and from the tasks' ports a rule of its own, which names both ends, up to this many flows."""

FEW_FLOWS_A_PORT = 4
"""Do the same up to this many flows a port: each task of a ring has two neighbours, however many tasks there are."""

FlowKey = tuple[str, str, int | None, int | None]
"""One direction of TCP traffic: source, destination, source port, destination port; a port of None is any."""


class TaskLike(Protocol):
    """A process: the host that it is on, and the TCP port that it listens on, if it does."""

    @property
    def host(self) -> str:
        """The host that it runs on."""

    @property
    def port(self) -> int | None:
        """None: it does not listen."""


class PairLike(Protocol):
    """Traffic from one host to another."""

    @property
    def src(self) -> str:
        """The host that sends."""

    @property
    def dst(self) -> str:
        """The host that receives."""


class FlowLike(PairLike, Protocol):
    """One direction of TCP traffic; a port of None is any."""

    @property
    def src_port(self) -> int | None:
        """The sender's port."""

    @property
    def dst_port(self) -> int | None:
        """The receiver's port."""


class Declaration(Protocol):
    """What a job declares of its traffic: the spec of the API, or the form in which the controller keeps it."""

    @property
    def tasks(self) -> Sequence[TaskLike]:
        """Its processes."""

    @property
    def flows(self) -> Sequence[FlowLike]:
        """The flows that it names one by one."""

    @property
    def demand(self) -> Sequence[PairLike]:
        """Who sends to whom in an iteration."""


def key_of(flow: FlowLike) -> FlowKey:
    """Returns what a flow matches, as a plain value."""
    return (flow.src, flow.dst, flow.src_port, flow.dst_port)


def in_order(flow: FlowKey) -> tuple[str, str, int, int]:
    """Returns the key to sort flows by."""
    src, dst, src_port, dst_port = flow
    return (src, dst, src_port or 0, dst_port or 0)


def wider(key: FlowKey) -> Iterator[FlowKey]:
    """Yields every flow that covers ``key``: itself, and those that leave one of its ports open."""
    src, dst, src_port, dst_port = key
    yield key
    if src_port is not None and dst_port is not None:
        yield (src, dst, None, dst_port)
        yield (src, dst, src_port, None)


def involved_hosts(spec: Declaration) -> frozenset[str]:
    """Returns every host on which the job has a task, a flow or demand."""
    return frozenset(
        {task.host for task in spec.tasks}
        | {host for flow in spec.flows for host in (flow.src, flow.dst)}
        | {host for demand in spec.demand for host in (demand.src, demand.dst)}
    )


def unknown_hosts(spec: Declaration, known: Collection[str]) -> list[tuple[str, str]]:
    """Returns (field, problem) of the first hosts that are not ``known``, MOST_PROBLEMS at most."""
    names = ", ".join(sorted(known)[:20]) or "none; name them under hosts in the settings"
    unknown = ((field, host) for field, host in _named_hosts(spec) if host not in known)
    return [(field, f"unknown host {host!r}; there are: {names}") for field, host in islice(unknown, MOST_PROBLEMS)]


def _named_hosts(spec: Declaration) -> Iterator[tuple[str, str]]:
    """Yields every field that names a host, and the host."""
    yield from ((f"tasks.{i}.host", task.host) for i, task in enumerate(spec.tasks))
    for name, pairs in (("flows", spec.flows), ("demand", spec.demand)):
        for i, pair in enumerate(pairs):
            yield f"{name}.{i}.src", pair.src
            yield f"{name}.{i}.dst", pair.dst


def repeated_ports(spec: Declaration) -> list[tuple[str, str]]:
    """Returns (field, problem) of the first listening ports that the job names twice, MOST_PROBLEMS at most."""
    seen: dict[Endpoint, int] = {}
    problems = []
    for i, task in enumerate(spec.tasks):
        if task.port is None:
            continue
        first = seen.setdefault((task.host, task.port), i)
        if first != i:
            problems.append((f"tasks.{i}.port", f"{task.port} on {task.host} is that of tasks.{first} already"))
    return problems[:MOST_PROBLEMS]


@dataclass(frozen=True, slots=True)
class Claims:
    """The ports and flows that identify a job's traffic. ``touches`` are the endpoints that its declared flows name."""

    listens: frozenset[Endpoint]
    touches: frozenset[Endpoint]
    flows: frozenset[FlowKey]

    @classmethod
    def of(cls, spec: Declaration) -> Claims:
        """Returns the claims of a spec."""
        return cls(
            listens=listening_ends(spec),
            touches=frozenset(end for flow in spec.flows for end in touched(key_of(flow))),
            flows=frozenset(map(key_of, spec.flows)),
        )

    def conflict(self, other: Claims, spec: Declaration) -> tuple[str, str] | None:
        """Returns the field of ``spec`` at fault, and what both claim in words; None where the claims do not conflict.

        ``spec`` is the declaration of these claims.
        """
        shared = (self.listens & other.listens) | (self.listens & other.touches) | (self.touches & other.listens)
        if shared:
            host, port = end = min(shared)
            listening = (f"tasks.{i}.port" for i, task in enumerate(spec.tasks) if (task.host, task.port) == end)
            return next(chain(listening, _flows_that(spec, lambda key: end in touched(key)))), f"port {port} on {host}"
        # Two flows that leave different ports open share packets too, but the rules' priorities distinguish them.
        if both := _inside(self.flows, other.flows) | _inside(other.flows, self.flows):
            src, dst, src_port, dst_port = flow = min(both, key=str)
            words = f"the flow {src}:{src_port or '*'} to {dst}:{dst_port or '*'}"
            return next(_flows_that(spec, lambda key: key in wider(flow))), words
        return None


def _flows_that(spec: Declaration, is_meant: Callable[[FlowKey], bool]) -> Iterator[str]:
    """Yields the fields of the flows that match."""
    return (f"flows.{i}" for i, flow in enumerate(spec.flows) if is_meant(key_of(flow)))


def _inside(flows: Collection[FlowKey], others: Container[FlowKey]) -> set[FlowKey]:
    """Returns the flows that one of ``others`` covers."""
    return {flow for flow in flows if covers(others, flow)}


def touched(flow: FlowKey) -> list[Endpoint]:
    """Returns the endpoints that a flow names."""
    src, dst, src_port, dst_port = flow
    return [(host, port) for host, port in ((src, src_port), (dst, dst_port)) if port is not None]


class ClaimedTraffic:
    """The traffic that a job claims: flows, or its tasks' ports where there would be too many pairs of hosts."""

    def __init__(self, flows: Sequence[FlowKey], listeners: Listeners = NO_LISTENERS) -> None:
        self.flows = tuple(flows)
        self.listeners = listeners
        self._keys = frozenset(flows)
        self._ends = frozenset(listeners.ends)
        self._among = frozenset(listeners.among)

    @classmethod
    def of(cls, spec: Declaration) -> ClaimedTraffic:
        """Returns the claims of ``spec``: its declared flows, and all traffic of the ports that its tasks listen on.

        Where the job declares demand, only the pairs of hosts in it communicate; else every host of the job does with
        every other. While these pairs are few they are flows of their own, so that a rule knows who may send.
        """
        flows = set(map(key_of, spec.flows))
        ends, partners = listening_ends(spec), _Partners(spec)
        if not partners.are_few(ends):
            return cls(sorted(flows, key=in_order), partners.listeners(ends))
        for host, port in ends:
            for other in partners.of(host):
                flows.add((other, host, None, port))
                flows.add((host, other, port, None))
        return cls(sorted(flows, key=in_order))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is claimed."""
        return not self.flows and not self.listeners.ends

    def covers(self, flow: FlowKey) -> bool:
        """Returns whether all packets of a flow are claimed."""
        if covers(self._keys, flow):
            return True
        src, dst, src_port, dst_port = flow
        to_port, from_port = (dst, dst_port) in self._ends, (src, src_port) in self._ends
        return (to_port and src in self._among) or (from_port and dst in self._among)


class _Partners:
    """Which hosts of a job communicate: those that its demand names as a pair, or all where it declares none."""

    def __init__(self, spec: Declaration) -> None:
        self._hosts = involved_hosts(spec)
        self._named: dict[str, set[str]] = {}
        for demand in spec.demand:
            self._named.setdefault(demand.src, set()).add(demand.dst)
            self._named.setdefault(demand.dst, set()).add(demand.src)

    def of(self, host: str) -> Collection[str]:
        """Returns the hosts that a host communicates with."""
        return self._named.get(host, ()) if self._named else self._hosts - {host}

    def flows_of(self, ends: Iterable[Endpoint]) -> int:
        """Returns how many flows there are to and from these ports."""
        if not self._named:
            return 2 * sum(len(self._hosts) - 1 for _ in ends)
        return 2 * sum(len(self._named.get(host, ())) for host, _ in ends)

    def are_few(self, ends: Collection[Endpoint]) -> bool:
        """Returns whether each pair of hosts may be a flow of its own."""
        return self.flows_of(ends) <= max(FEW_FLOWS, FEW_FLOWS_A_PORT * len(ends))

    def listeners(self, ends: Collection[Endpoint]) -> Listeners:
        """Returns the ports whose hosts communicate, and all these hosts."""
        if not self._named:
            return Listeners(tuple(sorted(ends)), tuple(sorted(self._hosts)))
        used = sorted(end for end in ends if end[0] in self._named)
        hosts = {host for host, _ in used}
        return Listeners(tuple(used), tuple(sorted(hosts.union(*(self._named[host] for host in hosts)))))


def listening_ends(spec: Declaration) -> frozenset[Endpoint]:
    """Returns the ports that the job's tasks listen on."""
    return frozenset((task.host, task.port) for task in spec.tasks if task.port is not None)


def size_of(spec: Declaration) -> int:
    """Returns the number of entries to keep of a job: its tasks, demand, flows, and the flows of its tasks' ports.

    Ports that are kept as ``Listeners`` count twice each, because they need two rules.
    """
    ends, partners = listening_ends(spec), _Partners(spec)
    claimed = partners.flows_of(ends) if partners.are_few(ends) else 2 * len(ends)
    return len(spec.tasks) + len(spec.demand) + len(spec.flows) + claimed


def covers(flows: Container[FlowKey], flow: FlowKey) -> bool:
    """Returns whether one of ``flows`` has all packets of ``flow``."""
    return any(key in flows for key in wider(flow))
