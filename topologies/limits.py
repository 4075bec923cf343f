"""Every link limited to its rate at both ends: the host's NIC and the switch's port.

The host's tree is the agent's own (``host_reporter.nic.interface``), so that the agent finds what it would make. A
switch's ports get a plain limit, which a controller that manages queues replaces; its rows carry the controller's tag.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

from controller.model import ACKNOWLEDGEMENT_DSCP, CLASS_DSCP
from host_reporter.nic.interface import htb_tree
from topologies.openvswitch import vsctl

JOB_FLOOR = 0.01
OTHER_FLOOR = 0.10
"""The controller's default shares of a link that a job class, and all other traffic, keep."""

QUEUE_PACKETS = 48
LONE_QUEUE_PACKETS = 64
"""What one queue of a switch's port holds, a few hundred KB as in a commodity switch: of packets that stand for 8 and
more, and where each stands for itself, since hosts on a userspace datapath have no offload."""

TAG = "trainyard"
_OTHER_PRIORITY = 7


def host_nic(interface: str, rate_bps: float, classes: int) -> list[str]:
    """The lines for ``tc -batch`` that limit a host's interface to ``rate_bps`` and serve ``classes`` by DSCP."""
    return htb_tree(interface, rate_bps, CLASS_DSCP[:classes], JOB_FLOOR, OTHER_FLOOR)


def bound_queues(interfaces: Iterable[str], packets: int = QUEUE_PACKETS) -> None:
    """Let no queue of these switch ports hold more than ``packets``: by default as much as a commodity switch's.

    For queues that are made later: a queue takes the length that its interface has then. The kernel's own 1,000 packets
    would delay a class that has only its floor by ten seconds and more.
    """
    lines = "".join(f"link set dev {interface} txqueuelen {packets}\n" for interface in interfaces)
    subprocess.run(["ip", "-batch", "-"], input=lines, text=True, check=True, capture_output=True)


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
    """The arguments that give each port its queues: by number, the priority and the share of the rate as floor."""
    arguments: list[str] = []
    for port, its_queues in queues.items():
        rate, tag = rates_bps[port], f"external_ids:{TAG}=topology"
        links = [f"queues:{number}=@{port}q{number}" for number in its_queues]
        arguments += ["--", "set", "port", port, f"qos=@{port}"]
        arguments += ["--", f"--id=@{port}", "create", "qos", "type=linux-htb"]
        arguments += [f"other_config:max-rate={round(rate)}", tag, *links]
        for number, (priority, share) in its_queues.items():
            values = {"priority": priority, "min-rate": round(rate * share), "max-rate": round(rate)}
            arguments += ["--", f"--id=@{port}q{number}", "create", "queue", tag]
            arguments += [f"other_config:{key}={value}" for key, value in values.items()]
    return arguments[1:]


def classify_by_dscp(ports: Mapping[str, float], classes: int) -> None:
    """Filters on the switch ports' own HTB that put a class's DSCP into its queue, and acknowledgements into the first.

    For the userspace datapath, where ``set_queue`` does nothing. Whoever changes the queues drops the filters.
    """
    served = [*enumerate(CLASS_DSCP[:classes]), (0, ACKNOWLEDGEMENT_DSCP)]
    lines = [
        f"filter add dev {port} parent 1: protocol ip prio 1 u32 match ip tos {dscp << 2:#04x} 0xfc flowid 1:{k + 2:x}"
        for port in ports
        for k, dscp in served
    ]
    subprocess.run(["tc", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True, capture_output=True)


def collect_rows() -> None:
    """Delete the QoS and Queue rows with our tag that no port uses any more."""
    # One question and one order: each takes a program of its own, a quarter of a second on a slow machine.
    told = vsctl(
        *("--format=json", "--data=json", "--columns=qos", "list", "port", "--"),
        *("--columns=_uuid,external_ids,queues", "list", "qos", "--", "--columns=_uuid,external_ids", "list", "queue"),
    )
    ports, systems, queues = (json.loads(line)["data"] for line in told.splitlines())
    used = {name for (system,) in ports for name in _names(system)}
    unused = {row[1]: its_queues for row, ids, its_queues in systems if _is_ours(ids) and row[1] not in used}
    kept = {name for row, _ids, its_queues in systems if row[1] not in unused for name in _names(its_queues)}
    gone = [("qos", row) for row in unused]
    gone += [("queue", row[1]) for row, ids in queues if _is_ours(ids) and row[1] not in kept]
    if gone:
        words = [word for table, row in gone for word in ("--", "--if-exists", "destroy", table, row)]
        vsctl("--no-wait", *words[1:])


def _names(value: list[Any]) -> list[str]:
    """The rows that a column of the database names: one, a set, or the values of a map, as RFC 7047 writes them."""
    kind, inner = value
    if kind == "uuid":
        return [inner]
    return [name for one in inner for name in _names(one[1] if kind == "map" else one)]


def _is_ours(external_ids: list[Any]) -> bool:
    return any(key == TAG for key, _value in external_ids[1])
