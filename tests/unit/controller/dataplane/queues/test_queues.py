"""The queues of managed ports: numbering, shares, ports and unused rows in the database, and the probe's frame."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from controller.dataplane.queues import managed, ovsdb
from controller.dataplane.queues.numbers import class_of, port_queues, queue_ids, queue_of
from controller.dataplane.queues.ovsdb import Database
from controller.dataplane.queues.ovsdb_select import OvsdbError
from controller.dataplane.queues.probe import frame
from tests.support.controller.dataplane.bridge_rows import DPID, PORT, WANTED, healthy, state
from tests.support.controller.dataplane.ovsdb_server import OvsdbServer


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


def test_classes_can_have_the_queues_of_lossless_priorities() -> None:
    numbers = (4, 3)
    assert [queue_of(k, numbers) for k in (None, 0, 1)] == list(queue_ids(2, numbers)) == [0, 4, 3]
    assert [class_of(queue, numbers) for queue in (0, 4, 3)] == [None, 0, 1]
    with pytest.raises(ValueError):
        class_of(5, numbers)
    found = port_queues(1e9, classes=2, job_floor=0.01, other_floor=0.1, numbers=numbers)
    assert {queue: row["priority"] for queue, row in found.queues.items()} == {0: "7", 4: "0", 3: "1"}


def test_ports_are_found_by_the_datapath_id_and_the_bridges_own_is_left_out() -> None:
    assert ovsdb.bridge_ports(state(**healthy()), DPID) == (PORT,)
    assert ovsdb.bridge_ports(state(**healthy()), 7) is None


@pytest.mark.parametrize("number", [-1, frozenset()])
def test_a_port_that_the_switch_has_not_made_is_left_out(number: Any) -> None:
    tables = healthy()
    tables["Interface"][1]["ofport"] = number
    assert ovsdb.bridge_ports(state(**tables), DPID) == ()


def test_rows_that_no_port_uses_are_collected() -> None:
    assert ovsdb.collect_garbage(state(**healthy(tag=""))) == []
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


@pytest.mark.parametrize(
    ("config", "is_set"), [({}, True), ({"n-threads": "2"}, True), ({"vlan-limit": "1"}, False), (None, False)]
)
def test_two_tags_are_seen_through_unless_somebody_has_set_how_many(
    config: dict[str, str] | None, is_set: bool
) -> None:
    rows = [] if config is None else [{"other_config": config}]
    arguments = ovsdb.see_through_tags(state(**healthy(), Open_vSwitch=rows))
    assert arguments == (["set", "open_vswitch", ".", "other_config:vlan-limit=2"] if is_set else [])


@pytest.mark.parametrize(("before", "after"), [(None, "2"), ("1", "1")])
def test_the_limit_of_a_real_database_is_set_once_and_one_of_the_operator_stays(
    tmp_path: Path, before: str | None, after: str
) -> None:
    server = OvsdbServer(tmp_path / "db", DPID)
    try:
        if before is not None:
            server.vsctl("set", "open_vswitch", ".", f"other_config:vlan-limit={before}")
        result = managed.ensure_queues(Database(server.address), DPID, lambda _port: WANTED)
        assert (result.problem, result.remark) == (None, None)
        assert server.vsctl("get", "open_vswitch", ".", "other_config:vlan-limit").strip().strip('"') == after
    finally:
        server.close()


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
