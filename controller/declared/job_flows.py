"""What a job declares of its traffic: flows and ports as plain values, and what can be wrong with them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from itertools import chain, islice
from typing import Literal, Protocol

from controller.model import WITH_PORTS, TrafficProtocol, server_of

Endpoint = tuple[str, int]
"""A host and a TCP or UDP port on it."""

Transport = Literal["tcp", "udp"]
"""The protocols of which one job alone claims a port."""

MOST_PROBLEMS = 50
"""Report this many faults of a job at a time, at most."""

FlowKey = tuple[str, str, int | None, int | None]
"""One direction of TCP or UDP traffic: source, destination, source port, destination port; a port of None is any.

Jobs declare traffic between servers, which stand for all their interfaces. Agents find it between interfaces.
"""

PairKey = tuple[str, str, TrafficProtocol]
"""One direction of traffic without ports: source, destination, and rocev2 or any. Several jobs may claim the same."""


class TaskLike(Protocol):
    """A process: the host that it is on, and the port that it listens on, if it does."""

    @property
    def host(self) -> str:
        """The host that it runs on."""

    @property
    def port(self) -> int | None:
        """None: it does not listen."""

    @property
    def protocol(self) -> TrafficProtocol:
        """The protocol of the port, or what the process sends without one."""


class PairLike(Protocol):
    """Traffic from one host to another."""

    @property
    def src(self) -> str:
        """The host that sends."""

    @property
    def dst(self) -> str:
        """The host that receives."""


class ConnectionLike(PairLike, Protocol):
    """One direction of traffic; a port of None is any."""

    @property
    def src_port(self) -> int | None:
        """The sender's port."""

    @property
    def dst_port(self) -> int | None:
        """The receiver's port."""


class FlowLike(ConnectionLike, Protocol):
    """One direction of traffic, and what its packets are."""

    @property
    def protocol(self) -> TrafficProtocol:
        """tcp or udp with ports; rocev2 or any without."""


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


def key_of(flow: ConnectionLike) -> FlowKey:
    """Returns what a flow of TCP or UDP matches, as a plain value."""
    return (flow.src, flow.dst, flow.src_port, flow.dst_port)


def in_order(flow: FlowKey) -> tuple[str, str, int, int]:
    """Returns the key to sort flows by."""
    src, dst, src_port, dst_port = flow
    return (src, dst, src_port or 0, dst_port or 0)


def between_servers(flow: FlowKey) -> FlowKey:
    """Returns a flow between interfaces as one between their servers, which is what jobs claim."""
    src, dst, src_port, dst_port = flow
    return (server_of(src), server_of(dst), src_port, dst_port)


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
    seen: dict[tuple[str, int, TrafficProtocol], int] = {}
    problems = []
    for i, task in enumerate(spec.tasks):
        if task.port is None:
            continue
        first = seen.setdefault((task.host, task.port, task.protocol), i)
        if first != i:
            problems.append((f"tasks.{i}.port", f"{task.port} on {task.host} is that of tasks.{first} already"))
    return problems[:MOST_PROBLEMS]


def touched(flow: FlowKey) -> list[Endpoint]:
    """Returns the endpoints that a flow names."""
    src, dst, src_port, dst_port = flow
    return [(host, port) for host, port in ((src, src_port), (dst, dst_port)) if port is not None]


def claims_traffic(task: TaskLike) -> bool:
    """Returns whether a task claims traffic of its host, by a port or without one."""
    return task.port is not None or task.protocol not in WITH_PORTS


def goes_beyond_tcp(spec: Declaration) -> bool:
    """Returns whether a job declares traffic that is not TCP."""
    return any(protocol != "tcp" for protocol in protocols_of(spec))


def protocols_of(spec: Declaration) -> Iterator[TrafficProtocol]:
    """Yields the protocol of each task and flow."""
    return chain((task.protocol for task in spec.tasks), (flow.protocol for flow in spec.flows))


def keys_of(spec: Declaration, transport: Transport) -> Iterator[FlowKey]:
    """Yields the flows of TCP or UDP that a job names one by one."""
    return (key_of(flow) for flow in spec.flows if flow.protocol == transport)


def sending_ends(spec: Declaration) -> frozenset[tuple[str, TrafficProtocol]]:
    """Returns the hosts of the tasks whose traffic has no port, and what it is."""
    return frozenset((task.host, task.protocol) for task in spec.tasks if task.protocol not in WITH_PORTS)


def listening_ends(spec: Declaration, transport: Transport = "tcp") -> frozenset[Endpoint]:
    """Returns the TCP or UDP ports that the job's tasks listen on."""
    return frozenset(
        (task.host, task.port) for task in spec.tasks if task.port is not None and task.protocol == transport
    )


def covers(flows: Container[FlowKey], flow: FlowKey) -> bool:
    """Returns whether one of ``flows`` has all packets of ``flow``."""
    return any(key in flows for key in wider(flow))
