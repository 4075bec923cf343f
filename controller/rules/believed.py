"""Determines at which ports a switch believes a DSCP that other programs use, too. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from controller.model import Snapshot, Switch


def believing_hosts_alone(snapshot: Snapshot) -> tuple[Switch, ...]:
    """Returns the switches, which trust only those of their trusted ports to which a host is connected.

    Behind any other port something may use the same DSCP for another purpose, such as a router for its protocols.
    """
    ports: defaultdict[int | None, set[int]] = defaultdict(set)
    for host in snapshot.hosts.values():
        if host.switch_port is not None:
            ports[host.switch].add(host.switch_port)
    return tuple(replace(switch, trusted_ports=_trusted(switch, ports[switch.dpid])) for switch in snapshot.switches)


def _trusted(switch: Switch, of_hosts: set[int]) -> frozenset[int]:
    return frozenset(of_hosts if switch.trusted_ports is None else of_hosts & switch.trusted_ports)
