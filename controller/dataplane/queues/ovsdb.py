"""An Open vSwitch database: where it is, the bridge and the ports in it, and the rows of ours that no port uses.

All but ``Database`` is pure. Rows of ours carry ``external_ids:trainyard``; a port's queues that someone else made are
left alone and reported, and rows of ours that no port uses any more are collected: deleting a bridge leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eventlet.green import subprocess
from ryu.lib import hub

from controller.access.certificates.contexts import TlsContext
from controller.dataplane.queues.ovsdb_select import TIMEOUT_SECONDS, OvsdbError, State, is_by_tls, select

TAG = "trainyard"
_VLAN_LIMIT = "vlan-limit"
_VLAN_TAGS = 2
"""Let a switch look behind this many VLAN tags. Open vSwitch looks behind two at most, and behind one by default."""
_TABLES = {
    "Open_vSwitch": ("other_config",),
    "Bridge": ("name", "datapath_id", "ports"),
    "Port": ("_uuid", "name", "qos", "interfaces"),
    "Interface": ("_uuid", "name", "ofport", "type"),
    "QoS": ("_uuid", "type", "other_config", "queues", "external_ids"),
    "Queue": ("_uuid", "other_config", "external_ids"),
}


class Database:
    """One Open vSwitch database; the caller's green thread waits for it. What changes it is a process, ``ovs-vsctl``.

    Who reads and then changes by what was read holds ``lock``: several switches may be in one database.
    """

    def __init__(self, address: str, tls: TlsContext | None = None) -> None:
        self.address = address
        self._tls = tls
        self.lock = hub.Semaphore(1)

    def read(self) -> State:
        """All rows that matter. Raises OvsdbError."""
        return select(self.address, _TABLES, tls=self._tls)

    def run(self, *arguments: str) -> str:
        """What ``ovs-vsctl`` prints for ``arguments``, one transaction. Raises OvsdbError."""
        command = ["ovs-vsctl", f"--db={self.address}", f"--timeout={TIMEOUT_SECONDS}", *self._files(), *arguments]
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
            raise OvsdbError(f"what ovs-vsctl says cannot be read: {error}") from error
        if process.returncode:
            lines = complaint.strip().splitlines() or [f"exit status {process.returncode}"]
            raise OvsdbError(f"{self.address}: {lines[-1]}")
        return str(out)

    def _files(self) -> list[str]:
        """The options with which ``ovs-vsctl`` speaks TLS. It knows no list of revoked certificates."""
        if self._tls is None or not is_by_tls(self.address):
            return []
        files = self._tls.certificates
        return [f"--private-key={files.key}", f"--certificate={files.certificate}", f"--ca-cert={files.authority}"]


class Databases:
    """Where each switch's database is: one address for all switches, or each one's own by datapath id."""

    def __init__(self, addresses: str | Mapping[int, str], tls: TlsContext | None = None) -> None:
        own = {addresses} if isinstance(addresses, str) else set(addresses.values())
        self._by_address = {address: Database(address, tls) for address in own}
        self._addresses = addresses

    def of(self, dpid: int) -> Database | None:
        """The database of a switch; None: the settings name none."""
        address = self._addresses if isinstance(self._addresses, str) else self._addresses.get(dpid)
        return None if address is None else self._by_address[address]


def as_set(value: Any) -> frozenset[Any]:
    """A column that may hold a set or, being alone, one value."""
    return value if isinstance(value, frozenset) else frozenset({value})


@dataclass(frozen=True, slots=True)
class BridgePort:
    """A port of a bridge as the database has it; ``number`` is its OpenFlow port. ``qos`` None: it has no queues."""

    name: str
    number: int
    qos: str | None


def bridge_ports(state: State, dpid: int) -> tuple[BridgePort, ...] | None:
    """The ports of the bridge with this datapath id, by number, without its own; None: the bridge is not here."""
    bridge = next((row for row in state["Bridge"] if row["datapath_id"] == f"{dpid:016x}"), None)
    if bridge is None:
        return None
    interfaces = {row["_uuid"]: row for row in state["Interface"]}
    found = []
    for port in state["Port"]:
        if port["_uuid"] not in as_set(bridge["ports"]) or port["name"] == bridge["name"]:
            continue
        numbers = [interfaces[uuid]["ofport"] for uuid in as_set(port["interfaces"]) if uuid in interfaces]
        # A port that the switch could not make has the number -1, one that it has not made yet an empty set.
        known = sorted(number for number in numbers if isinstance(number, int) and number > 0)
        if known:
            found.append(BridgePort(port["name"], known[0], next(iter(as_set(port["qos"])), None)))
    return tuple(sorted(found, key=lambda port: port.number))


def see_through_tags(state: State) -> list[str]:
    """The arguments of one transaction that let the switch see what is behind two VLAN tags (QinQ).

    Empty: somebody has set how many it looks behind. That is left alone.
    """
    if not state["Open_vSwitch"] or any(_VLAN_LIMIT in row["other_config"] for row in state["Open_vSwitch"]):
        return []
    return ["set", "open_vswitch", ".", f"other_config:{_VLAN_LIMIT}={_VLAN_TAGS}"]


def collect_garbage(state: State) -> list[str]:
    """The arguments of one transaction that deletes the rows of ours that no port uses; empty: there are none."""
    used = frozenset().union(*(as_set(port["qos"]) for port in state["Port"]))
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
