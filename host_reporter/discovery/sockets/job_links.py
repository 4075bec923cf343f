"""The links of one job over all network namespaces that it has sockets in. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from host_reporter.discovery.sockets.links import Link, Links, Uses
from host_reporter.discovery.sockets.sock_diag import LISTEN, Socket


@dataclass
class JobLinks:
    """What was found of a job. ``links``: by namespace, over time; ``here``: in the agent's own, now.

    The agent's own namespace has the number 0.
    """

    links: dict[int, Links] = field(default_factory=dict)
    found: frozenset[Link] = frozenset()
    here: frozenset[Link] = frozenset()
    connections: int = 0

    def look(self, own: Mapping[int, Sequence[Socket]], looked: Collection[int], uses: Uses, now: float) -> None:
        """Take the job's sockets by namespace. ``looked``: the namespaces looked at; ``uses``: of all their sockets."""
        everywhere = Uses(sock for sockets in own.values() for sock in sockets) if len(own) > 1 else None
        self.links = {
            number: self.links.get(number) or Links() for number in looked if number in self.links or number in own
        }
        links_of = {
            number: links.look(own.get(number, ()), uses, now, everywhere) for number, links in self.links.items()
        }
        self.found = frozenset[Link]().union(*links_of.values())
        self.connections = sum(sock.state != LISTEN for sockets in own.values() for sock in sockets)
        if 0 in looked:
            self.here = links_of.get(0, frozenset())


def pods(jobs: Mapping[str, JobLinks], addresses: Mapping[int, frozenset[bytes]]) -> dict[str, frozenset[bytes]]:
    """Returns the addresses of the namespaces that each job has sockets in, by job.

    ``addresses`` are those of all namespaces; see ``Namespaces.addresses``.
    """
    found = {}
    for job, known in jobs.items():
        if own := [addresses[number] for number in known.links if number in addresses]:
            found[job] = frozenset[bytes]().union(*own)
    return found
