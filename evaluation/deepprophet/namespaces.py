"""A small network on this machine: one network namespace for each rank, on one bridge, with limits at both link ends.

Distributed PyTorch is measured on it with all processors of the machine; it needs no emulated testbed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from topologies import tools
from topologies.errors import LabError
from topologies.signals import held_off

QUEUE_PACKETS = 64
CONGESTION_CONTROL = "cubic"
"""All ranks use this congestion control, Linux's default, whatever the machine uses."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """The network namespace of a rank, with its address and interface."""

    name: str
    address: str
    interface: str = "eth0"

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Returns the command that runs ``arguments`` in this namespace."""
        return ["ip", "netns", "exec", self.name, *arguments]


@contextmanager
def connected_namespaces(count: int, rate_bps: float, tag: str = "typ") -> Iterator[list[Namespace]]:
    """Creates ``count`` namespaces on one bridge, with links of ``rate_bps``, and removes them at the end.

    Raises LabError, CalledProcessError.
    """
    if os.geteuid() != 0:
        raise LabError("network namespaces need root; run it as root")
    prefix = f"{tag}{os.getpid()}"
    names = [f"{prefix}s", *(f"{prefix}n{number}" for number in range(count))]
    ranks = [Namespace(name, f"10.77.0.{number + 1}") for number, name in enumerate(names[1:])]
    try:
        for name in names:
            _run("ip", "netns", "add", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        _run("ip", "-n", names[0], "link", "add", "switch", "type", "bridge")
        _run("ip", "-n", names[0], "link", "set", "switch", "up")
        for number, namespace in enumerate(ranks):
            _join(names[0], f"p{number}", namespace, rate_bps)
        yield ranks
    finally:
        with held_off():
            # Deleting a namespace deletes its interfaces too.
            for name in names:
                tools.run(["ip", "netns", "delete", name], check=False)


def _join(switch: str, port: str, namespace: Namespace, rate_bps: float) -> None:
    _run(
        "ip",
        "-n",
        switch,
        "link",
        "add",
        port,
        "type",
        "veth",
        "peer",
        "name",
        namespace.interface,
        "netns",
        namespace.name,
    )
    _run("ip", "-n", switch, "link", "set", port, "master", "switch", "txqueuelen", str(QUEUE_PACKETS), "up")
    _run("ip", "-n", namespace.name, "link", "set", namespace.interface, "txqueuelen", str(QUEUE_PACKETS))
    _run("ip", "-n", namespace.name, "address", "add", f"{namespace.address}/24", "dev", namespace.interface)
    _run("ip", "-n", namespace.name, "link", "set", namespace.interface, "up")
    for name, interface in ((switch, port), (namespace.name, namespace.interface)):
        _run("tc", "-n", name, "qdisc", "add", "dev", interface, "root", "handle", "1:", "htb", "default", "1")
        rate = f"{round(rate_bps)}bit"
        _run("tc", "-n", name, "class", "add", "dev", interface, "parent", "1:", "classid", "1:1", "htb", "rate", rate)
    # A kernel without this congestion control keeps its own.
    tools.run(
        namespace.command(["sysctl", "-qw", f"net.ipv4.tcp_congestion_control={CONGESTION_CONTROL}"]), check=False
    )


def _run(*command: str) -> None:
    tools.run(command, timeout=30)
