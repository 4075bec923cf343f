"""The rows of a database as they are read: one bridge with one port that has its queues."""

from __future__ import annotations

from typing import Any

from controller.dataplane.queues.numbers import port_queues
from controller.dataplane.queues.ovsdb import BridgePort
from controller.dataplane.queues.ovsdb_select import State

DPID = 0x2A
WANTED = port_queues(100e6, classes=7, job_floor=0.01, other_floor=0.10)


def state(**tables: list[dict[str, Any]]) -> State:
    return {
        name: tuple(tables.get(name, ())) for name in ("Open_vSwitch", "Bridge", "Port", "Interface", "QoS", "Queue")
    }


def healthy(tag: str = "trainyard") -> dict[str, list[dict[str, Any]]]:
    """One bridge with one port that has its queues."""
    ids = {tag: "000000000000002a/1"} if tag else {}
    queues = [{"_uuid": f"q{n}", "other_config": dict(c), "external_ids": ids} for n, c in WANTED.queues.items()]
    system = {
        "_uuid": "s1",
        "type": "linux-htb",
        "other_config": {"max-rate": WANTED.rate},
        "queues": {n: f"q{n}" for n in WANTED.queues},
        "external_ids": ids,
    }
    return {
        "Bridge": [{"name": "s1", "datapath_id": "000000000000002a", "ports": frozenset({"p0", "p1"})}],
        "Port": [
            {"_uuid": "p0", "name": "s1", "qos": frozenset(), "interfaces": "i0"},
            {"_uuid": "p1", "name": "eth1", "qos": "s1", "interfaces": "i1"},
        ],
        "Interface": [
            {"_uuid": "i0", "name": "s1", "ofport": 65534, "type": "internal"},
            {"_uuid": "i1", "name": "eth1", "ofport": 1, "type": ""},
        ],
        "QoS": [system],
        "Queue": queues,
    }


PORT = BridgePort("eth1", 1, "s1")
