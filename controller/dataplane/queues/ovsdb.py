"""Queues on the ports of an Open vSwitch bridge: the rows of its database, and the commands that correct them.

All but ``Database`` is pure. Rows of ours have ``external_ids:trainyard``. Queues that somebody else made are left
alone and reported. Rows of ours that no port uses any more, as after a bridge was deleted, are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eventlet.green import subprocess
from ryu.lib import hub

from controller.dataplane.queues.numbers import KIND, PortQueues

TAG = "trainyard"
_TABLES = {
    "Bridge": ("name", "datapath_id", "ports"),
    "Port": ("_uuid", "name", "qos", "interfaces"),
    "Interface": ("_uuid", "name", "ofport", "type"),
    "QoS": ("_uuid", "type", "other_config", "queues", "external_ids"),
    "Queue": ("_uuid", "other_config", "external_ids"),
}
_TIMEOUT_SECONDS = 5

Row = Mapping[str, Any]
State = Mapping[str, tuple[Row, ...]]


class OvsdbError(Exception):
    """The switch's database cannot be read or changed. The message is one line."""


class Database:
    """One Open vSwitch database, through ``ovs-vsctl`` as a subprocess; only the caller's green thread waits.

    Hold ``lock`` from a read to the change that depends on it: several switches may share a database.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.lock = hub.Semaphore(1)

    def read(self) -> State:
        """Returns the rows of ports and queues, by table. Raises OvsdbError."""
        arguments: list[str] = []
        for table, columns in _TABLES.items():
            arguments += [*(["--"] if arguments else []), f"--columns={','.join(columns)}", "list", table]
        answers = self.run("--format=json", "--data=json", "--no-wait", *arguments).splitlines()
        if len(answers) != len(_TABLES):
            raise OvsdbError(f"ovs-vsctl answered with {len(answers)} tables, not {len(_TABLES)}")
        try:
            return {table: parse_table(text) for table, text in zip(_TABLES, answers, strict=True)}
        except (ValueError, KeyError, TypeError) as error:
            raise OvsdbError(f"ovs-vsctl did not answer with tables: {type(error).__name__}: {error}") from error

    def run(self, *arguments: str) -> str:
        """Run ``ovs-vsctl`` with ``arguments``, as one transaction. Returns its output. Raises OvsdbError."""
        command = ["ovs-vsctl", f"--db={self.address}", f"--timeout={_TIMEOUT_SECONDS}", *arguments]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        except FileNotFoundError as error:
            raise OvsdbError("ovs-vsctl is not installed; install Open vSwitch, or set queues: existing") from error
        except OSError as error:
            raise OvsdbError(f"ovs-vsctl cannot be run: {error.strerror or error}") from error
        try:
            out, complaint = process.communicate()
        except (OSError, ValueError) as error:
            process.kill()
            process.wait()
            raise OvsdbError(f"the output of ovs-vsctl cannot be read: {error}") from error
        if process.returncode:
            lines = complaint.strip().splitlines() or [f"exit status {process.returncode}"]
            raise OvsdbError(f"{self.address}: {lines[-1]}")
        return str(out)


class Databases:
    """The database of each switch: one address for all switches, or one by datapath id."""

    def __init__(self, addresses: str | Mapping[int, str]) -> None:
        own = {addresses} if isinstance(addresses, str) else set(addresses.values())
        self._by_address = {address: Database(address) for address in own}
        self._addresses = addresses

    def of(self, dpid: int) -> Database | None:
        """Returns the database of a switch, or None if the settings name none."""
        address = self._addresses if isinstance(self._addresses, str) else self._addresses.get(dpid)
        return None if address is None else self._by_address[address]


def parse_table(text: str) -> tuple[Row, ...]:
    """Returns the rows of one table in ``ovs-vsctl``'s JSON: sets as frozensets, maps as dicts, UUIDs as text."""
    table = json.loads(text)
    return tuple(
        {heading: _value(value) for heading, value in zip(table["headings"], row, strict=True)} for row in table["data"]
    )


def _value(value: Any) -> Any:
    match value:
        case ["uuid", name]:
            return name
        case ["set", items]:
            return frozenset(_value(item) for item in items)
        case ["map", pairs]:
            return {_value(key): _value(item) for key, item in pairs}
    return value


def _members(value: Any) -> frozenset[Any]:
    """Returns a column's value as a set: ``ovs-vsctl`` writes a set of one as its only value."""
    return value if isinstance(value, frozenset) else frozenset({value})


@dataclass(frozen=True, slots=True)
class BridgePort:
    """A port of a bridge in the database. ``number`` is its OpenFlow port. ``qos`` is None if it has no queues."""

    name: str
    number: int
    qos: str | None


def bridge_ports(state: State, dpid: int) -> tuple[BridgePort, ...] | None:
    """Returns the ports of the bridge with this datapath id, sorted by number, without the bridge's own port.

    Returns None if the database has no such bridge.
    """
    bridge = next((row for row in state["Bridge"] if row["datapath_id"] == f"{dpid:016x}"), None)
    if bridge is None:
        return None
    interfaces = {row["_uuid"]: row for row in state["Interface"]}
    ports = []
    for port in state["Port"]:
        if port["_uuid"] not in _members(bridge["ports"]) or port["name"] == bridge["name"]:
            continue
        numbers = [interfaces[uuid]["ofport"] for uuid in _members(port["interfaces"]) if uuid in interfaces]
        # A port that the switch could not make has the number -1. A port that it has not made yet has an empty set.
        known = sorted(number for number in numbers if isinstance(number, int) and number > 0)
        if known:
            ports.append(BridgePort(port["name"], known[0], next(iter(_members(port["qos"])), None)))
    return tuple(sorted(ports, key=lambda port: port.number))


def missing_queues(
    state: State, ports: Mapping[BridgePort, PortQueues]
) -> tuple[Mapping[BridgePort, PortQueues], frozenset[BridgePort]]:
    """Returns the ports whose queues are not as wanted, and the ports with queues that are not ours."""
    systems = {row["_uuid"]: row for row in state["QoS"]}
    rows = {row["_uuid"]: row for row in state["Queue"]}
    missing: dict[BridgePort, PortQueues] = {}
    foreign = set()
    for port, wanted in ports.items():
        system = systems.get(port.qos) if port.qos is not None else None
        if system is None:
            missing[port] = wanted
        elif TAG not in system["external_ids"]:
            foreign.add(port)
        else:
            held = {number: rows[uuid]["other_config"] for number, uuid in system["queues"].items() if uuid in rows}
            rate = system["other_config"].get("max-rate")
            if (system["type"], rate, held) != (KIND, wanted.rate, wanted.queues):
                missing[port] = wanted
    return missing, frozenset(foreign)


def make_queues(dpid: int, ports: Mapping[BridgePort, PortQueues]) -> list[str]:
    """Returns the arguments of one ``ovs-vsctl`` transaction that gives each port new queues, in new rows."""
    arguments: list[str] = []
    for port, wanted in ports.items():
        tag = f"external_ids:{TAG}={dpid:016x}/{port.number}"
        name = f"@p{port.number}"
        links = [f"queues:{number}={name}q{number}" for number in wanted.queues]
        arguments += ["--", "set", "port", port.name, f"qos={name}"]
        arguments += ["--", f"--id={name}", "create", "qos", f"type={KIND}"]
        arguments += [f"other_config:max-rate={wanted.rate}", tag, *links]
        for number, config in wanted.queues.items():
            values = [f"other_config:{key}={value}" for key, value in config.items()]
            arguments += ["--", f"--id={name}q{number}", "create", "queue", *values, tag]
    return arguments[1:]


def collect_garbage(state: State) -> list[str]:
    """Returns the arguments of one transaction that deletes the rows of ours that no port uses, or an empty list."""
    used = frozenset().union(*(_members(port["qos"]) for port in state["Port"]))
    kept_queues: set[str] = set()
    arguments: list[str] = []
    for row in state["QoS"]:
        if row["_uuid"] in used or TAG not in row["external_ids"]:
            kept_queues.update(row["queues"].values())
        else:
            arguments += ["--", "--if-exists", "destroy", "qos", row["_uuid"]]
    for row in state["Queue"]:
        if row["_uuid"] not in kept_queues and TAG in row["external_ids"]:
            arguments += ["--", "--if-exists", "destroy", "queue", row["_uuid"]]
    return arguments[1:]
