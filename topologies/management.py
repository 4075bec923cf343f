"""The management network: how reporters reach the controller without sharing a link with what is measured.

A plain bridge of the root namespace, ``10.254.0.254``; host hN has ``10.254.0.N`` on ``hN-mgmt``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

BRIDGE = "ty-mgmt"
ROOT_ADDRESS = "10.254.0.254"
LARGEST = 253
"""Hosts that fit in."""


def interfaces(numbers: range) -> tuple[str, ...]:
    """The names that are going to exist in the root namespace."""
    return (BRIDGE, *(f"ty-m{number}" for number in numbers))


def connect(hosts: Mapping[int, int]) -> None:
    """Make the bridge and plug the hosts in: number -> process id of the host's namespace."""
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
    _batch(["ip", "-batch", "-"], lines)
    for number, pid in hosts.items():
        inside = [f"addr add 10.254.0.{number}/24 dev h{number}-mgmt", f"link set dev h{number}-mgmt up"]
        _batch(["mnexec", "-a", str(pid), "ip", "-batch", "-"], inside)


def _batch(command: list[str], lines: list[str]) -> None:
    subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True, capture_output=True)
