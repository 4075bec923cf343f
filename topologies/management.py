"""The management network, over which agents reach the controller without using a link that is measured.

It is a bridge in the root namespace with the address ``10.254.0.254``. Host hN has ``10.254.0.N`` on ``hN-mgmt``.
"""

from __future__ import annotations

from collections.abc import Mapping

from topologies import tools

BRIDGE = "ty-mgmt"
ROOT_ADDRESS = "10.254.0.254"
LARGEST = 253
"""The network has addresses for this many hosts."""


def interfaces(numbers: range) -> tuple[str, ...]:
    """Return the names of the interfaces that ``connect`` makes in the root namespace."""
    return (BRIDGE, *(f"ty-m{number}" for number in numbers))


def connect(hosts: Mapping[int, int]) -> None:
    """Make the bridge and connect the hosts.

    ``hosts`` maps a host's number to a process in its namespace. Raises subprocess.CalledProcessError.
    """
    lines = [
        f"link add name {BRIDGE} type bridge",
        f"addr add {ROOT_ADDRESS}/24 dev {BRIDGE}",
        f"link set dev {BRIDGE} up",
    ]
    for number, pid in hosts.items():
        lines += [
            f"link add name ty-m{number} type veth peer name h{number}-mgmt netns {pid}",
            f"link set dev ty-m{number} master {BRIDGE} up",
        ]
    tools.run(["ip", "-batch", "-"], lines=lines)
    for number, pid in hosts.items():
        inside = [f"addr add 10.254.0.{number}/24 dev h{number}-mgmt", f"link set dev h{number}-mgmt up"]
        tools.run(["mnexec", "-a", str(pid), "ip", "-batch", "-"], lines=inside)
