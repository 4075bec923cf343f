"""The connections of one job that hosts' agents have found: one set a host, which each report replaces.

A set belongs to the session (one run of an agent) that reported it. The next agent of the host reports another set. It
does not where it no longer follows the job, and then nobody would remove the old set. So the registry looks at
``sessions`` now and then, and drops the sets whose agents are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from controller.declared.job_flows import FlowKey, between_servers


def both_ways(host: str, peer: str, port: int | None, peer_port: int | None) -> tuple[FlowKey, FlowKey]:
    """Returns the two directions of a link, as flows."""
    return (host, peer, port, peer_port), (peer, host, peer_port, port)


@dataclass
class Finding:
    """The connections that one host found: ``flows`` of both directions, and the number of links ``left_out``.

    ``session`` and ``seq`` name the batch that reported them last. ``session`` is empty where the journal lacks it.
    """

    session: str
    seq: int = 0
    flows: frozenset[FlowKey] = frozenset()
    left_out: int = 0
    connections: int = 0


class FoundTraffic:
    """The connections found of one job, by host."""

    def __init__(self, findings: Mapping[str, Finding] | None = None) -> None:
        self._hosts: dict[str, Finding] = dict(findings or {})

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts whose agents look for the job's sockets."""
        return frozenset(self._hosts)

    @property
    def findings(self) -> dict[str, Finding]:
        """What was found by host, for the journal."""
        return dict(sorted(self._hosts.items()))

    @property
    def sessions(self) -> dict[str, str]:
        """The session that reported the connections, by host."""
        return {host: finding.session for host, finding in self._hosts.items()}

    @property
    def flows(self) -> frozenset[FlowKey]:
        """All flows that were found, both directions of each link."""
        return frozenset().union(*(finding.flows for finding in self._hosts.values()))

    @property
    def left_out(self) -> int:
        """The number of links that agents left out, because there were too many."""
        return sum(finding.left_out for finding in self._hosts.values())

    @property
    def connections(self) -> int:
        """The number of connections that live. Where both ends report, each counts once."""
        return max((finding.connections for finding in self._hosts.values()), default=0)

    def links_of(self, host: str) -> int:
        """Returns how many links a host has named."""
        finding = self._hosts.get(host)
        return len(finding.flows) // 2 if finding is not None else 0

    def merge(
        self, host: str, session: str, seq: int, flows: Iterable[FlowKey] | None, *, left_out: int, connections: int
    ) -> bool:
        """Merge the report of a host's present agent; returns whether the flows have changed.

        ``flows`` of None: they are as before. A batch from before the last one that was merged changes nothing.
        """
        finding = self._hosts.get(host)
        is_new = finding is None
        if finding is None:
            finding = self._hosts[host] = Finding(session)
        if session == finding.session and seq < finding.seq:
            return False
        finding.connections = connections
        if flows is None:
            return is_new
        before = (finding.flows, finding.left_out)
        finding.session, finding.seq = session, seq
        finding.flows, finding.left_out = frozenset(flows), left_out
        return is_new or before != (finding.flows, finding.left_out)

    def drop(self, hosts: Collection[str]) -> bool:
        """Forget what these hosts found, and that they look for sockets; returns whether there was any."""
        gone = self._hosts.keys() & hosts
        for host in gone:
            del self._hosts[host]
        return bool(gone)

    def give_up(self, is_not_ours: Callable[[FlowKey], bool]) -> bool:
        """Forget the found flows that are not the job's; returns whether there were any.

        ``is_not_ours`` is asked of flows between servers.
        """
        any_gone = False
        for finding in self._hosts.values():
            kept = frozenset(flow for flow in finding.flows if not is_not_ours(between_servers(flow)))
            any_gone |= len(kept) < len(finding.flows)
            finding.flows = kept
        return any_gone
