"""What switches hold: rules with their age, and queues with their versions. Pure, apart from the two readers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from topologies import openvswitch, tools

_OURS = "7472"
"""The cookies of the controller's rules begin so; those of the gate, which are renewed all the time, do not."""
_RULE = re.compile(r"\s*cookie=0x(?P<cookie>[0-9a-f]+), duration=(?P<age>[\d.]+)s, (?P<rest>table=.*)")
_COUNTERS = re.compile(r"n_(?:packets|bytes)=\d+, ")
_TO_PORT = re.compile(r"tp_dst=(?P<port>\d+)\b.*\bset_queue:(?P<queue>\d+)\b")
_CLASS = re.compile(r"class htb 1:(?P<minor>[0-9a-f]+) .*?\brate (?P<rate>\d+)(?P<unit>[KMG]?)bit")
_SENT = re.compile(
    r"class htb 1:(?P<minor>[0-9a-f]+) .*\n Sent \d+ bytes (?P<sent>\d+) pkt \(dropped (?P<dropped>\d+),"
)
_DISCIPLINE = re.compile(r"^qdisc ", re.MULTILINE)
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_COLUMNS = {"Port": ["name", "qos"], "QoS": ["_uuid", "_version", "queues"], "Queue": ["_uuid", "_version"]}
_ROOT_MINOR = 0xFFFE


class Held(NamedTuple):
    """A rule's cookie, and how many seconds it has been there."""

    cookie: str
    age: float


class Count(NamedTuple):
    """What the kernel has counted at a queue: packets sent, and dropped."""

    sent: int
    dropped: int


Rules = Mapping[str, Held]
"""By the switch, the match and the actions of a rule."""
Queues = Mapping[str, tuple[str, ...]]
"""The rows of a port's queues by the port's name: each row's id and version, that of the port's QoS first."""
Counts = Mapping[tuple[str, int], Count]
"""By port and queue."""


def rules(switches: Iterable[str]) -> dict[str, Held]:
    """Returns the controller's rules, without the gates. Raises OSError where a switch does not answer."""
    found: dict[str, Held] = {}
    for switch in switches:
        text = tools.run(["ovs-ofctl", "-O", "OpenFlow13", "dump-flows", switch]).stdout
        found |= {f"{switch} {rule}": held for rule, held in parsed_rules(text).items()}
    return found


def parsed_rules(text: str) -> dict[str, Held]:
    """Returns the controller's rules in what ``ovs-ofctl dump-flows`` prints, by table, match and actions."""
    found = filter(None, map(_RULE.match, text.splitlines()))
    return {
        _COUNTERS.sub("", rule["rest"]): Held(rule["cookie"], float(rule["age"]))
        for rule in found
        if rule["cookie"].startswith(_OURS)
    }


def touched_rules(before: Rules, after: Rules, seconds: float) -> tuple[str, ...]:
    """Returns the rules of ``before`` that are gone, have another cookie, or are younger than so many seconds."""
    return tuple(
        rule
        for rule, held in before.items()
        if (now := after.get(rule)) is None or now.cookie != held.cookie or now.age < seconds
    )


def queue_by_port(held: Rules) -> dict[int, int]:
    """Returns the queue of packets to each TCP port that a rule matches. The lower of two queues is served first."""
    found = (_TO_PORT.search(rule) for rule in held)
    return {int(rule["port"]): int(rule["queue"]) for rule in found if rule is not None}


def queues() -> dict[str, tuple[str, ...]]:
    """Returns the rows of each port's queues in the database of this machine.

    ``ovs-vsctl`` does not show versions. Raises subprocess.CalledProcessError.
    """
    asked = [{"op": "select", "table": table, "where": [], "columns": columns} for table, columns in _COLUMNS.items()]
    request = json.dumps(["Open_vSwitch", *asked])
    return parsed_queues(tools.run(["ovsdb-client", "transact", openvswitch.DATABASE, request]).stdout)


def parsed_queues(text: str) -> dict[str, tuple[str, ...]]:
    """Returns the rows of each port that has queues, in the answer of the database (RFC 7047) to ``_COLUMNS``."""
    ports, systems, rows = (each["rows"] for each in json.loads(text))
    row_of = {row["_uuid"][1]: f"{row['_uuid'][1]} {row['_version'][1]}" for row in (*systems, *rows)}
    of_system = {
        system["_uuid"][1]: (
            row_of[system["_uuid"][1]],
            *(row_of[queue[1]] for _number, queue in system["queues"][1]),
        )
        for system in systems
    }
    return {port["name"]: of_system[port["qos"][1]] for port in ports if port["qos"][0] == "uuid"}


def touched_queues(before: Queues, after: Queues, ports: Iterable[str], *, rows_only: bool = False) -> tuple[str, ...]:
    """Returns the rows of these ports' queues that are gone or have been written.

    With ``rows_only`` they may have been written, because they were to change in place.
    """

    def seen(held: Queues, port: str) -> set[str]:
        return {row.split()[0] if rows_only else row for row in held.get(port, ())}

    return tuple(row for port in ports for row in sorted(seen(before, port) - seen(after, port)))


def counts(ports: Sequence[str]) -> dict[tuple[str, int], Count]:
    """Returns what the kernel counts at each queue of these ports."""
    return {
        (port, _queue(found)): Count(int(found["sent"]), int(found["dropped"]))
        for port, text in _classes(ports, "-s").items()
        for found in _SENT.finditer(text)
        if int(found["minor"], 16) != _ROOT_MINOR
    }


def begun_again(before: Counts, after: Counts) -> tuple[tuple[str, int], ...]:
    """Returns the ports and queues whose counters are gone, or have begun again."""
    return tuple(key for key, count in before.items() if key not in after or after[key].sent < count.sent)


def floors(ports: Sequence[str]) -> dict[str, dict[int, float]]:
    """Returns the minimum rate of each queue in the kernel, in bit/s, by port and queue."""
    return {port: parsed_floors(text) for port, text in _classes(ports).items()}


def parsed_floors(text: str) -> dict[int, float]:
    """Returns the minimum rate of each queue in what ``tc class show`` prints, in bit/s."""
    return {
        _queue(found): float(found["rate"]) * _UNITS[found["unit"]]
        for found in _CLASS.finditer(text)
        if int(found["minor"], 16) != _ROOT_MINOR
    }


def _classes(ports: Sequence[str], *options: str) -> dict[str, str]:
    """Returns what ``tc class show`` prints of each port. One process asks for all, because a box starts few."""
    lines = [line for port in ports for line in (f"qdisc show dev {port}", f"class show dev {port}")]
    return by_port(ports, tools.run(["tc", *options, "-batch", "-"], lines=lines).stdout)


def by_port(ports: Sequence[str], text: str) -> dict[str, str]:
    """Returns the part of each port. ``text`` has the ports in this order, each with its queueing discipline first."""
    return dict(zip(ports, _DISCIPLINE.split(text)[1:], strict=True))


def _queue(found: re.Match[str]) -> int:
    return int(found["minor"], 16) - 1
