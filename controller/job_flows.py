"""From what a job declares to the flows that are its own, and the ports that it claims for itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import dataclass
from itertools import chain

from controller.model import Flow
from controller.wire import FlowSpec, JobSpec

Endpoint = tuple[str, int]
"""A host and a TCP port on it."""

FlowKey = tuple[str, str, int | None, int | None]
"""One direction of TCP traffic: source, destination, source port, destination port; a port of None is any."""


def key_of(flow: FlowSpec | Flow) -> FlowKey:
    """What a flow matches, as a plain value."""
    return (flow.src, flow.dst, flow.src_port, flow.dst_port)


def wider(key: FlowKey) -> Iterator[FlowKey]:
    """Every flow that has all packets of ``key``: itself, and those that leave one of its ports open."""
    src, dst, src_port, dst_port = key
    yield key
    if src_port is not None and dst_port is not None:
        yield (src, dst, None, dst_port)
        yield (src, dst, src_port, None)


def involved_hosts(spec: JobSpec) -> frozenset[str]:
    """Every host on which the job has a task, a flow or demand."""
    return frozenset(
        {task.host for task in spec.tasks}
        | {host for flow in spec.flows for host in (flow.src, flow.dst)}
        | {host for demand in spec.demand for host in (demand.src, demand.dst)}
    )


def unknown_hosts(spec: JobSpec, known: Collection[str]) -> list[tuple[str, str]]:
    """(field, problem) of every host that is not ``known``."""
    places = [(f"tasks.{i}.host", task.host) for i, task in enumerate(spec.tasks)]
    pairs = [(f"flows.{i}", flow.src, flow.dst) for i, flow in enumerate(spec.flows)]
    pairs += [(f"demand.{i}", demand.src, demand.dst) for i, demand in enumerate(spec.demand)]
    for place, src, dst in pairs:
        places += [(f"{place}.src", src), (f"{place}.dst", dst)]
    names = ", ".join(sorted(known)[:20]) or "none; name them under hosts in the settings"
    return [(field, f"unknown host {host!r}; there are: {names}") for field, host in places if host not in known]


def repeated_ports(spec: JobSpec) -> list[tuple[str, str]]:
    """(field, problem) of every listening port that the job itself names twice."""
    seen: dict[Endpoint, int] = {}
    problems = []
    for i, task in enumerate(spec.tasks):
        if task.port is None:
            continue
        first = seen.setdefault((task.host, task.port), i)
        if first != i:
            problems.append((f"tasks.{i}.port", f"{task.port} on {task.host} is that of tasks.{first} already"))
    return problems


@dataclass(frozen=True, slots=True)
class Claims:
    """What a job's traffic is told apart by. ``touches`` are the endpoints that its declared flows name."""

    listens: frozenset[Endpoint]
    touches: frozenset[Endpoint]
    flows: frozenset[FlowKey]

    @classmethod
    def of(cls, spec: JobSpec) -> Claims:
        """The claims of a spec."""
        return cls(
            listens=frozenset((task.host, task.port) for task in spec.tasks if task.port is not None),
            touches=frozenset(end for flow in spec.flows for end in touched(key_of(flow))),
            flows=frozenset(map(key_of, spec.flows)),
        )

    def conflict(self, other: Claims, spec: JobSpec) -> tuple[str, str] | None:
        """(field, what both claim in words), the field of ``spec``, which makes these claims; None: they can live side
        by side."""
        shared = (self.listens & other.listens) | (self.listens & other.touches) | (self.touches & other.listens)
        if shared:
            host, port = end = min(shared)
            listening = (f"tasks.{i}.port" for i, task in enumerate(spec.tasks) if (task.host, task.port) == end)
            return next(chain(listening, _flows_that(spec, lambda key: end in touched(key)))), f"port {port} on {host}"
        # Two flows that leave different ports open share packets too, but the rules' priorities tell those apart.
        if both := _inside(self.flows, other.flows) | _inside(other.flows, self.flows):
            src, dst, src_port, dst_port = flow = min(both, key=str)
            words = f"the flow {src}:{src_port or '*'} to {dst}:{dst_port or '*'}"
            return next(_flows_that(spec, lambda key: key in wider(flow))), words
        return None


def _flows_that(spec: JobSpec, is_meant: Callable[[FlowKey], bool]) -> Iterator[str]:
    """The fields of the flows that are meant."""
    return (f"flows.{i}" for i, flow in enumerate(spec.flows) if is_meant(key_of(flow)))


def _inside(flows: Collection[FlowKey], others: Container[FlowKey]) -> set[FlowKey]:
    """The flows that one of ``others`` has all packets of."""
    return {flow for flow in flows if covers(others, flow)}


def touched(flow: FlowKey) -> list[Endpoint]:
    """The endpoints that a flow names."""
    src, dst, src_port, dst_port = flow
    return [(host, port) for host, port in ((src, src_port), (dst, dst_port)) if port is not None]


def derived_flows(job: str, spec: JobSpec) -> frozenset[Flow]:
    """The flows that a job declares, and those to and from every port that one of its tasks listens on.

    Where the job has demand, only the pairs of hosts that it names talk; else every other host of the job does.
    """
    flows = {Flow(job, f.src, f.dst, f.src_port, f.dst_port) for f in spec.flows}
    pairs = {(d.src, d.dst) for d in spec.demand}
    hosts = involved_hosts(spec)
    for task in spec.tasks:
        if task.port is None:
            continue
        for other in hosts - {task.host}:
            if pairs and (other, task.host) not in pairs and (task.host, other) not in pairs:
                continue
            flows.add(Flow(job, other, task.host, dst_port=task.port))
            flows.add(Flow(job, task.host, other, src_port=task.port))
    return frozenset(flows)


def size_of(spec: JobSpec) -> int:
    """How much there is to keep of a job: its tasks, its demand, and the flows that ``derived_flows`` makes at most."""
    hosts = involved_hosts(spec)
    partners: dict[str, set[str]] = {}
    for demand in spec.demand:
        partners.setdefault(demand.src, set()).add(demand.dst)
        partners.setdefault(demand.dst, set()).add(demand.src)
    listening = (task.host for task in spec.tasks if task.port is not None)
    derived = sum(2 * (len(partners.get(host, ())) if partners else len(hosts) - 1) for host in listening)
    return len(spec.tasks) + len(spec.demand) + len(spec.flows) + derived


def covers(flows: Container[FlowKey], flow: FlowKey) -> bool:
    """Whether all packets of a flow are those of one that is known already."""
    return any(key in flows for key in wider(flow))
