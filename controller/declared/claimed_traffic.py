"""From a job's declaration to the traffic that it claims: flows, or ports where there would be too many flows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from controller.declared.job_flows import (
    Declaration,
    Endpoint,
    FlowKey,
    PairKey,
    Transport,
    covers,
    goes_beyond_tcp,
    in_order,
    involved_hosts,
    keys_of,
    listening_ends,
    sending_ends,
)
from controller.model import NO_LISTENERS, WITH_PORTS, Listeners

FEW_FLOWS = 128
"""Give each flow to and from the tasks' ports a rule of its own, which names both ends, up to this many flows."""

FEW_FLOWS_A_PORT = 4
"""Do the same up to this many flows a port: each task of a ring has two neighbours, however many tasks there are."""


class ClaimedTraffic:
    """The traffic that a job claims: flows, or its tasks' ports where there would be too many pairs of hosts.

    ``flows`` and ``listeners`` are of TCP, ``udp_flows`` and ``udp_listeners`` of UDP. ``pairs`` have no ports.
    """

    def __init__(
        self,
        flows: Sequence[FlowKey],
        listeners: Listeners = NO_LISTENERS,
        *,
        udp_flows: Sequence[FlowKey] = (),
        udp_listeners: Listeners = NO_LISTENERS,
        pairs: Sequence[PairKey] = (),
    ) -> None:
        self.flows = tuple(flows)
        self.listeners = listeners
        self.udp_flows = tuple(udp_flows)
        self.udp_listeners = udp_listeners
        self.pairs = tuple(pairs)
        self._keys = frozenset(flows)
        self._ends = frozenset(listeners.ends)
        self._among = frozenset(listeners.among)

    @classmethod
    def of(cls, spec: Declaration) -> ClaimedTraffic:
        """Returns the claims of ``spec``: its declared flows, and all traffic of the ports that its tasks listen on.

        Where the job declares demand, only the pairs of hosts in it communicate; else every host of the job does with
        every other. While these pairs are few they are flows of their own, so that a rule knows who may send.
        """
        partners = Partners(spec)
        flows, listeners = _claimed_ports(spec, partners, "tcp")
        if not goes_beyond_tcp(spec):
            return cls(flows, listeners)
        udp_flows, udp_listeners = _claimed_ports(spec, partners, "udp")
        pairs = sorted(set(claimed_pairs(spec, partners)))
        return cls(flows, listeners, udp_flows=udp_flows, udp_listeners=udp_listeners, pairs=pairs)

    @property
    def is_without_tcp(self) -> bool:
        """Whether nothing of TCP is claimed."""
        return not self.flows and not self.listeners.ends

    def covers(self, flow: FlowKey) -> bool:
        """Returns whether all packets of a TCP flow are claimed by its ports."""
        if covers(self._keys, flow):
            return True
        src, dst, src_port, dst_port = flow
        to_port, from_port = (dst, dst_port) in self._ends, (src, src_port) in self._ends
        return (to_port and src in self._among) or (from_port and dst in self._among)


class Partners:
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

    def flows_of(self, ends: Collection[tuple[str, object]]) -> int:
        """Returns how many flows there are to and from these ports, each with its host."""
        if not self._named:
            return 2 * len(ends) * (len(self._hosts) - 1)
        return 2 * sum(len(self._named.get(host, ())) for host, _ in ends)

    def are_few(self, ends: Collection[tuple[str, object]]) -> bool:
        """Returns whether each pair of hosts may be a flow of its own."""
        return self.flows_of(ends) <= max(FEW_FLOWS, FEW_FLOWS_A_PORT * len(ends))

    def listeners(self, ends: Collection[Endpoint]) -> Listeners:
        """Returns the ports whose hosts communicate, and all these hosts."""
        if not self._named:
            return Listeners(tuple(sorted(ends)), tuple(sorted(self._hosts)))
        used = sorted(end for end in ends if end[0] in self._named)
        hosts = {host for host, _ in used}
        return Listeners(tuple(used), tuple(sorted(hosts.union(*(self._named[host] for host in hosts)))))


def _claimed_ports(spec: Declaration, partners: Partners, transport: Transport) -> tuple[Sequence[FlowKey], Listeners]:
    """Returns what a job claims of TCP or UDP."""
    flows = set(keys_of(spec, transport))
    ends = listening_ends(spec, transport)
    if not partners.are_few(ends):
        return sorted(flows, key=in_order), partners.listeners(ends)
    for host, port in ends:
        for other in partners.of(host):
            flows.add((other, host, None, port))
            flows.add((host, other, port, None))
    return sorted(flows, key=in_order), NO_LISTENERS


def claimed_pairs(spec: Declaration, partners: Partners) -> Iterator[PairKey]:
    """Yields what a job claims without ports: that of its flows, and that of its tasks, if these pairs are few.

    If they are many, a switch knows a job's RoCEv2 where the job alone uses a pair of hosts (see ``rules.places``).
    """
    yield from ((flow.src, flow.dst, flow.protocol) for flow in spec.flows if flow.protocol not in WITH_PORTS)
    ends = sending_ends(spec)
    if partners.are_few(ends):
        for host, protocol in ends:
            for other in partners.of(host):
                yield other, host, protocol
                yield host, other, protocol


def size_of(spec: Declaration) -> int:
    """Returns the number of entries to keep of a job: its tasks, demand, flows, and the flows of its tasks' ports.

    Ports that are kept as ``Listeners`` count twice each, because they need two rules.
    """
    partners = Partners(spec)
    claimed = 0
    for ends in (listening_ends(spec, "tcp"), listening_ends(spec, "udp"), sending_ends(spec)):
        claimed += partners.flows_of(ends) if partners.are_few(ends) else 2 * len(ends)
    return len(spec.tasks) + len(spec.demand) + len(spec.flows) + claimed
