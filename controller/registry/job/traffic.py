"""What hosts' agents have found of one job's connections: a set a host, in the place of the one before.

A set is that of the session (one run of an agent) that told it. The agent that comes in its place tells another; where
it does not, because the job is not its any more, nobody would ever take the set away: the registry asks for ``tellers``
now and then, and has those dropped whose agents are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from controller.declared.job_flows import FlowKey


def both_ways(host: str, peer: str, port: int | None, peer_port: int | None) -> tuple[FlowKey, FlowKey]:
    """The two directions of a link, as flows."""
    return (host, peer, port, peer_port), (peer, host, peer_port, port)


@dataclass
class Finding:
    """What one host found. ``flows``: of both directions, as ``session`` told them; ``left_out``: links beside them.

    ``seq``: of the batch that told it last. ``session`` is empty where the journal does not say it.
    """

    session: str
    seq: int = 0
    flows: frozenset[FlowKey] = frozenset()
    left_out: int = 0
    connections: int = 0


class FoundTraffic:
    """Of one job, by host."""

    def __init__(self, findings: Mapping[str, Finding] | None = None) -> None:
        self._hosts: dict[str, Finding] = dict(findings or {})

    @property
    def hosts(self) -> frozenset[str]:
        """Those whose agents look for the job's sockets."""
        return frozenset(self._hosts)

    @property
    def findings(self) -> dict[str, Finding]:
        """All of it by host, for the journal."""
        return dict(sorted(self._hosts.items()))

    @property
    def sessions(self) -> dict[str, str]:
        """The session that reported the connections, by host."""
        return {host: finding.session for host, finding in self._hosts.items()}

    @property
    def flows(self) -> frozenset[FlowKey]:
        """All that was found, both directions of each link."""
        return frozenset().union(*(finding.flows for finding in self._hosts.values()))

    @property
    def left_out(self) -> int:
        """Links that were too many to name."""
        return sum(finding.left_out for finding in self._hosts.values())

    @property
    def connections(self) -> int:
        """Those that live, each counted at one end where both ends' hosts tell."""
        return max((finding.connections for finding in self._hosts.values()), default=0)

    def links_of(self, host: str) -> int:
        """How many links a host has named."""
        finding = self._hosts.get(host)
        return len(finding.flows) // 2 if finding is not None else 0

    def merge(
        self, host: str, session: str, seq: int, flows: Iterable[FlowKey] | None, *, left_out: int, connections: int
    ) -> bool:
        """Take what a host's present agent tells; ``flows`` of None: they are as before. Whether they are others now.

        A batch from before the one that was taken last tells nothing new.
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
        """Forget what these hosts found, and that they look; whether there was any."""
        gone = self._hosts.keys() & hosts
        for host in gone:
            del self._hosts[host]
        return bool(gone)

    def give_up(self, is_not_ours: Callable[[FlowKey], bool]) -> bool:
        """Forget flows that were found; whether there were such."""
        any_gone = False
        for finding in self._hosts.values():
            kept = frozenset(flow for flow in finding.flows if not is_not_ours(flow))
            any_gone |= len(kept) < len(finding.flows)
            finding.flows = kept
        return any_gone
