"""Which interfaces a server has, and which of them a name stands for.

Jobs, reports and plans are of servers; loads, rules and trees are of interfaces. A server with one interface is one
endpoint with the server's name, so the two are the same there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controller.model import Host, server_of


class Servers(Mapping[str, tuple[Host, ...]]):
    """The interfaces of each server, by the server's name, in the order of the settings."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        found: dict[str, list[Host]] = {}
        for host in hosts.values():
            found.setdefault(host.server, []).append(host)
        self._servers = {name: tuple(interfaces) for name, interfaces in found.items()}
        self._hosts = hosts
        self.have_several = len(found) < len(hosts)
        """Whether any server has several interfaces."""

    def __getitem__(self, name: str) -> tuple[Host, ...]:
        return self._servers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def __len__(self) -> int:
        return len(self._servers)

    def of(self, name: str) -> tuple[Host, ...]:
        """Returns what a name stands for: one interface, or all those of a server. Empty: nobody knows the server.

        An interface that its server does not have any more stands for all those that it has.
        """
        host = self._hosts.get(name)
        return (host,) if host is not None else self._servers.get(server_of(name), ())

    def egress_bps(self, server: str) -> float:
        """Returns the rate of all links from a server together, in bit/s. Raises KeyError."""
        return sum(host.egress_bps for host in self._servers[server])
