"""A sender and a receiver with a router between them, each a network namespace, made and removed by the tests."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.host.two_hosts import TwoHosts
from tests.support.ip_commands import ip

RECEIVER = "10.77.2.2"
RECEIVER_IPV6 = "fd77:2::2"
ENTRANCE, EXIT = "port1", "port2"
"""The ports of the router: towards the sender, and towards the receiver."""

_SIDES = (("10.77.1", "fd77:1::", ENTRANCE), ("10.77.2", "fd77:2::", EXIT))


@dataclass(frozen=True)
class RoutedHosts(TwoHosts):
    """The namespaces; ``interface`` is the only one of the sender."""

    router: str

    def sh(self, script: str) -> str:
        """Run a script of the shell on the router; returns what it says."""
        done = self.run(self.router, "sh", "-c", script)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@contextlib.contextmanager
def routed_hosts() -> Iterator[RoutedHosts]:
    """Make the namespaces, take them away afterwards. The router forwards both families; the cables have no limit."""
    mark = secrets.token_hex(4)
    hosts = RoutedHosts(f"ty-a{mark}", f"ty-b{mark}", "eth0", f"ty-r{mark}")
    ends = hosts.sender, hosts.receiver
    with contextlib.ExitStack() as stack:
        for name in (hosts.router, *ends):
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False, capture_output=True)
        cables = [
            f"link add {port} netns {hosts.router} type veth peer name eth0 netns {host}"
            for host, (_, _, port) in zip(ends, _SIDES, strict=True)
        ]
        ip(lines=[*(f"netns add {name}" for name in (hosts.router, *ends)), *cables])
        hosts.sh("echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
        inside = [line for ipv4, ipv6, port in _SIDES for line in _plugged(port, f"{ipv4}.1", f"{ipv6}1")]
        ip("-n", hosts.router, lines=inside)
        for host, (ipv4, ipv6, _) in zip(ends, _SIDES, strict=True):
            # A packet of 64 KB would be a second of the lowest class. Emulated hosts of the lab have the same limit.
            limit = "link set eth0 gso_max_segs 8"
            routes = [f"route add default via {ipv4}.1", f"route add default via {ipv6}1"]
            ip("-n", host, lines=[*_plugged("eth0", f"{ipv4}.2", f"{ipv6}2"), limit, *routes])
        yield hosts


def _plugged(interface: str, ipv4: str, ipv6: str) -> list[str]:
    """Returns the commands of ``ip`` that give an interface its addresses."""
    return [
        f"address add {ipv4}/24 dev {interface}",
        f"address add {ipv6}/64 dev {interface} nodad",
        f"link set {interface} up",
    ]
