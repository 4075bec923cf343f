"""Jobs as the ordering and the rules see them: with traffic between interfaces in the place of servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller.endpoints.servers import Servers
from controller.endpoints.spread import shares, spread
from controller.memo import Memo
from controller.model import Demand, Flow, Host, Job, Listeners

MOST_FLOWS = 16_384
"""Let the flows of a job between all interfaces of its servers be at most this many. A job with more is taken to send
only between the interfaces that its demand would run between."""
_REMEMBERED_JOBS = 32_768


class JobsOnInterfaces:
    """Puts jobs on the interfaces of hosts. What is worked out is remembered as long as a job's traffic is the same.

    Where each server has one interface, all jobs stay the same objects, unless something was found on an interface that
    its server had before.
    """

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self.servers = Servers(hosts)
        self._plain: Memo[tuple[Demand, ...] | tuple[Flow, ...], bool] = Memo(2 * _REMEMBERED_JOBS)
        self._demands: Memo[tuple[Demand, ...], tuple[Demand, ...]] = Memo(_REMEMBERED_JOBS)
        self._flows: Memo[tuple[Flow, ...], tuple[Flow, ...]] = Memo(_REMEMBERED_JOBS)
        self._listeners: Memo[Listeners, Listeners] = Memo(_REMEMBERED_JOBS)
        self._senders: Memo[tuple[Demand, ...], Mapping[str, float]] = Memo(_REMEMBERED_JOBS)

    def of(self, job: Job) -> Job:
        """Returns a job with traffic between interfaces.

        Its tasks stay on servers, and so do the hosts that look for its sockets.
        """
        # Declared flows name servers, so they are as they should be where demand and found flows are.
        if not self.servers.have_several and self._names_servers(job.demand) and self._names_servers(job.found):
            return job
        demand = self._demands.get(job.demand, lambda: spread(self.servers, job.demand))
        return replace(
            job,
            demand=demand,
            flows=self._flows.get(job.flows, lambda: self._between(job.flows)),
            found=self._flows.get(job.found, lambda: self._between(job.found)),
            listeners=self._listeners.get(job.listeners, lambda: self._listening(job.listeners)),
            udp_listeners=self._listeners.get(job.udp_listeners, lambda: self._listening(job.udp_listeners)),
            sent_bytes=self._sent(job.sent_bytes, self._senders.get(demand, lambda: _by_sender(demand))),
        )

    def names(self, servers: Iterable[str]) -> frozenset[str]:
        """Returns the names of all interfaces of servers."""
        return frozenset(host.name for server in servers for host in self.servers.of(server))

    def _names_servers(self, traffic: tuple[Demand, ...] | tuple[Flow, ...]) -> bool:
        """Returns whether traffic is between servers alone."""
        if not traffic:
            return True
        known = self._plain.peek(traffic)
        if known is None:
            known = self._plain.get(
                traffic, lambda: not any("/" in end for part in traffic for end in (part.src, part.dst))
            )
        return known

    def _between(self, flows: tuple[Flow, ...]) -> tuple[Flow, ...]:
        """Returns flows between servers as flows between interfaces: a connection may use any two of them."""
        of = self.servers.of
        count = sum(max(len(of(flow.src)), 1) * max(len(of(flow.dst)), 1) for flow in flows)
        made: dict[Flow, None] = {}
        for flow in flows:
            if count > MOST_FLOWS:
                pairs = [(src, dst) for src, dst, _ in shares(self.servers, flow.src, flow.dst)]
            else:
                pairs = [(a, b) for a in self._names(flow.src) for b in self._names(flow.dst)]
            made |= dict.fromkeys(flow._replace(src=a, dst=b) for a, b in pairs)
        return tuple(made)

    def _listening(self, listeners: Listeners) -> Listeners:
        return Listeners(
            tuple((name, port) for host, port in listeners.ends for name in self._names(host)),
            tuple(name for host in listeners.among for name in self._names(host)),
        )

    def _names(self, name: str) -> tuple[str, ...]:
        return tuple(host.name for host in self.servers.of(name)) or (name,)

    def _sent(self, sent: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
        """Returns the bytes that interfaces have sent: those of the server, in the ratio of what they send ``now``."""
        parts: dict[str, float] = {}
        for server, total in sent.items():
            hosts = self.servers.of(server)
            weights = [now.get(host.name, 0.0) for host in hosts]
            if not any(weights):
                weights = [host.egress_bps for host in hosts]
            parts |= {host.name: total * weight / sum(weights) for host, weight in zip(hosts, weights, strict=True)}
            if not hosts:
                parts[server] = total
        return parts


def _by_sender(demand: Iterable[Demand]) -> dict[str, float]:
    sent: dict[str, float] = {}
    for src, _, amount in demand:
        sent[src] = sent.get(src, 0.0) + amount
    return sent
