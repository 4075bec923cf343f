"""The queues of managed ports: numbering, shares, and the commands that make the database right."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from controller.dataplane.queues import ovsdb
from controller.dataplane.queues.numbers import class_of, port_queues, queue_ids, queue_of
from controller.dataplane.queues.ovsdb import BridgePort, Database
from controller.dataplane.queues.ovsdb_select import OvsdbError, State
from controller.dataplane.queues.probe import frame

DPID = 0x2A
WANTED = port_queues(100e6, classes=7, job_floor=0.01, other_floor=0.10)


def state(**tables: list[dict[str, Any]]) -> State:
    return {name: tuple(tables.get(name, ())) for name in ("Bridge", "Port", "Interface", "QoS", "Queue")}


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


def test_class_0_is_served_first_and_all_other_traffic_last_by_default() -> None:
    by_priority = sorted(WANTED.queues, key=lambda queue: int(WANTED.queues[queue]["priority"]))
    assert [class_of(queue) for queue in by_priority] == [*range(7), None]
    assert [queue_of(k) for k in (None, *range(7))] == list(queue_ids(7)) == list(range(8))
    assert WANTED.queues[0] == {"priority": "7", "min-rate": "10000000", "max-rate": "100000000"}
    assert WANTED.queues[1] == {"priority": "0", "min-rate": "1000000", "max-rate": "100000000"}


def test_fewer_classes_have_fewer_queues() -> None:
    found = port_queues(1e9, classes=3, job_floor=0.01, other_floor=0.1)
    assert sorted(found.queues) == [0, 1, 2, 3]
    assert found.queues[0]["priority"] == "7"


def test_ports_are_found_by_the_datapath_id_and_the_bridges_own_is_left_out() -> None:
    assert ovsdb.bridge_ports(state(**healthy()), DPID) == (PORT,)
    assert ovsdb.bridge_ports(state(**healthy()), 7) is None


@pytest.mark.parametrize("number", [-1, frozenset()])
def test_a_port_that_the_switch_has_not_made_is_left_out(number: Any) -> None:
    tables = healthy()
    tables["Interface"][1]["ofport"] = number
    assert ovsdb.bridge_ports(state(**tables), DPID) == ()


def test_queues_that_are_right_stay_untouched() -> None:
    assert ovsdb.missing_queues(state(**healthy()), {PORT: WANTED}) == ({}, frozenset())


@pytest.mark.parametrize("spoil", ["rate", "priority", "queue", "kind", "none"])
def test_queues_that_are_wrong_are_made_anew(spoil: str) -> None:
    tables = healthy()
    port = PORT
    if spoil == "rate":
        tables["QoS"][0]["other_config"] = {"max-rate": "5"}
    elif spoil == "priority":
        tables["Queue"][0]["other_config"]["priority"] = "0"
    elif spoil == "queue":
        del tables["Queue"][3]
    elif spoil == "kind":
        tables["QoS"][0]["type"] = "linux-hfsc"
    else:
        port = BridgePort("eth1", 1, None)
    assert ovsdb.missing_queues(state(**tables), {port: WANTED}) == ({port: WANTED}, frozenset())


def test_queues_of_somebody_else_are_told_apart_and_not_touched() -> None:
    assert ovsdb.missing_queues(state(**healthy(tag="")), {PORT: WANTED}) == ({}, {PORT})
    assert ovsdb.collect_garbage(state(**healthy(tag=""))) == []


def test_one_transaction_makes_a_port_and_tags_every_row() -> None:
    command = " ".join(ovsdb.make_queues(DPID, {PORT: WANTED}))
    assert command.startswith("set port eth1 qos=@p1 -- --id=@p1 create qos type=linux-htb")
    assert command.count("external_ids:trainyard=000000000000002a/1") == 9
    assert "queues:0=@p1q0" in command
    assert "--id=@p1q0 create queue other_config:priority=7 other_config:min-rate=10000000" in command


def test_rows_that_no_port_uses_are_collected() -> None:
    tables = healthy()
    assert ovsdb.collect_garbage(state(**tables)) == []
    tables["Port"][1]["qos"] = frozenset()
    command = " ".join(ovsdb.collect_garbage(state(**tables)))
    assert command.startswith("--if-exists destroy qos s1 -- ")
    assert command.count("destroy queue") == 8


def test_queues_that_somebody_elses_port_still_uses_are_kept() -> None:
    tables = healthy()
    tables["Port"][1]["qos"] = frozenset()
    foreign = dict(tables["QoS"][0]) | {"_uuid": "s2", "external_ids": {}, "queues": {0: "q0"}}
    tables["QoS"].append(foreign)
    assert "destroy queue q0" not in " ".join(ovsdb.collect_garbage(state(**tables)))


def test_a_database_that_is_not_there_is_one_clear_line() -> None:
    with pytest.raises(OvsdbError, match=r"unix:/nonexistent/db\.sock") as caught:
        Database("unix:/nonexistent/db.sock").read()
    assert "\n" not in str(caught.value)


def test_a_probe_frame_is_valid_and_nobodys() -> None:
    data = frame(59)
    assert data[:6] == bytes.fromhex("0180c200000e")
    assert data[12:14] == b"\x08\x00"
    header = data[14:34]
    total = sum(struct.unpack("!10H", header))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    assert header[1] == 59 << 2
    assert struct.unpack("!H", header[2:4])[0] == len(data) - 14
    assert len(data) >= 60
