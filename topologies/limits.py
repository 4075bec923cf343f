"""Limits every link to its rate at both ends: at the host's NIC and at the switch's port.

The host's queues are those that the agent makes (``host_reporter.nic.interface``), so the agent finds its own layout. A
switch's ports get a plain rate limit. A controller that manages queues replaces it; its rows carry the same tag.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from controller.code_points import CodePoints
from host_reporter.nic.interface import htb_tree
from topologies import tools
from topologies.openvswitch import vsctl

JOB_FLOOR = 0.01
OTHER_FLOOR = 0.10
"""A job class, and all other traffic, keep these shares of a link at least: the controller's defaults."""

QUEUE_PACKETS = 48
LONE_QUEUE_PACKETS = 64
"""A queue of a switch's port holds this many packets: a few hundred KB, as in a commodity switch.

With segmentation offload a packet in a queue stands for 8 and more on the wire. Hosts on a userspace datapath have
no offload; their queues hold ``LONE_QUEUE_PACKETS``.
"""

TAG = "trainyard"
_OTHER_PRIORITY = 7


def host_nic(interface: str, rate_bps: float, points: CodePoints) -> list[str]:
    """Return the lines for ``tc -batch`` that limit a host's NIC to ``rate_bps`` and serve classes by DSCP."""
    return htb_tree(interface, rate_bps, points, JOB_FLOOR, OTHER_FLOOR)


def bound_queues(interfaces: Iterable[str], packets: int = QUEUE_PACKETS) -> None:
    """Let each queue of these switch ports hold ``packets`` at most.

    This counts for queues that are made later, because a new queue takes the length that its interface has. The
    kernel's default of 1,000 packets would delay a class that has only its floor by ten seconds and more.
    """
    lines = [f"link set dev {interface} txqueuelen {packets}" for interface in interfaces]
    tools.run(["ip", "-batch", "-"], lines=lines)


def limit_ports(rates_bps: Mapping[str, float]) -> None:
    """Limit switch ports, by interface name, with one queue each. Raises OpenVSwitchError."""
    vsctl(*_one_transaction({port: {0: (0, 1.0)} for port in rates_bps}, rates_bps))


def make_queues(rates_bps: Mapping[str, float], classes: int) -> None:
    """Give switch ports the queues that an operator makes for ``queues: existing``. Raises OpenVSwitchError."""
    queues = {0: (_OTHER_PRIORITY, OTHER_FLOOR)} | {k + 1: (k, JOB_FLOOR) for k in range(classes)}
    vsctl(*_one_transaction(dict.fromkeys(rates_bps, queues), rates_bps))


def _one_transaction(
    queues: Mapping[str, Mapping[int, tuple[int, float]]], rates_bps: Mapping[str, float]
) -> list[str]:
    """Return the ovs-vsctl arguments that give each port its queues.

    A queue's number maps to its priority and to the share of the rate that is its floor.
    """
    arguments: list[str] = []
    for port, port_queues in queues.items():
        rate, tag = rates_bps[port], f"external_ids:{TAG}=topology"
        links = [f"queues:{number}=@{port}q{number}" for number in port_queues]
        arguments += ["--", "set", "port", port, f"qos=@{port}"]
        arguments += ["--", f"--id=@{port}", "create", "qos", "type=linux-htb"]
        arguments += [f"other_config:max-rate={round(rate)}", tag, *links]
        for number, (priority, share) in port_queues.items():
            values = {"priority": priority, "min-rate": round(rate * share), "max-rate": round(rate)}
            arguments += ["--", f"--id=@{port}q{number}", "create", "queue", tag]
            arguments += [f"other_config:{key}={value}" for key, value in values.items()]
    return arguments[1:]


def classify_by_dscp(ports: Mapping[str, float], points: CodePoints) -> None:
    """Put packets into queues by DSCP, with filters on the HTB of the switch's ports; acknowledgements go to the first.

    The userspace datapath needs this, because its ``set_queue`` does nothing. Changing the queues drops the filters.
    """
    lines = [
        f"filter add dev {port} parent 1: {family} {dscp << 2:#04x} 0xfc flowid 1:{k + 2:x}"
        for port in ports
        for dscp, k in points.served().items()
        for family in ("protocol ip prio 1 u32 match ip tos", "protocol ipv6 prio 2 u32 match ip6 priority")
    ]
    tools.run(["tc", "-batch", "-"], lines=lines)


def collect_rows() -> None:
    """Delete the QoS and Queue rows with our tag that no port uses any more."""
    # Two calls at most, because each starts a program, which takes a quarter of a second on a slow machine.
    output = vsctl(
        *("--format=json", "--data=json", "--columns=qos", "list", "port", "--"),
        *("--columns=_uuid,external_ids,queues", "list", "qos", "--", "--columns=_uuid,external_ids", "list", "queue"),
    )
    ports, systems, queues = (json.loads(line)["data"] for line in output.splitlines())
    used = {name for (system,) in ports for name in _names(system)}
    unused = {row[1]: row_queues for row, ids, row_queues in systems if _is_ours(ids) and row[1] not in used}
    needed = {name for row, _ids, row_queues in systems if row[1] not in unused for name in _names(row_queues)}
    obsolete = [("qos", row) for row in unused]
    obsolete += [("queue", row[1]) for row, ids in queues if _is_ours(ids) and row[1] not in needed]
    if obsolete:
        words = [word for table, row in obsolete for word in ("--", "--if-exists", "destroy", table, row)]
        vsctl("--no-wait", *words[1:])


def _names(value: list[Any]) -> list[str]:
    """Return the rows that a database column names: one row, a set, or the values of a map (RFC 7047)."""
    kind, inner = value
    if kind == "uuid":
        return [inner]
    return [name for item in inner for name in _names(item[1] if kind == "map" else item)]


def _is_ours(external_ids: list[Any]) -> bool:
    return any(key == TAG for key, _value in external_ids[1])
