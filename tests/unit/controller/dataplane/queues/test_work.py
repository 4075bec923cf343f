"""What ports need so that their queues are as wanted: nothing, other values in their rows, or new rows."""

from __future__ import annotations

from typing import Any

import pytest

from controller.dataplane.queues.numbers import PortQueues, port_queues
from controller.dataplane.queues.ovsdb import BridgePort
from controller.dataplane.queues.work import QueueWork, compare_queues
from tests.support.controller.dataplane.bridge_rows import DPID, PORT, WANTED, healthy, state

Tables = dict[str, list[dict[str, Any]]]


def needs(tables: Tables, wanted: PortQueues = WANTED, port: BridgePort = PORT) -> QueueWork:
    return compare_queues(state(**tables), {port: wanted})


def transaction(work: QueueWork) -> list[str]:
    """Returns the commands of the one transaction."""
    return " ".join(work.transaction(DPID)).split(" -- ")


def with_floors(job_floor: float, other_floor: float, rate_bps: float = 100e6) -> PortQueues:
    return port_queues(rate_bps, classes=7, job_floor=job_floor, other_floor=other_floor)


def test_queues_that_are_right_stay_untouched() -> None:
    work = needs(healthy())
    assert not work
    assert transaction(work) == [""]


@pytest.mark.parametrize("spoil", ["queue", "more", "kind", "none"])
def test_queues_that_are_missing_or_of_another_kind_are_made_anew(spoil: str) -> None:
    tables = healthy()
    port = PORT
    if spoil == "queue":
        del tables["Queue"][3]
    elif spoil == "more":
        tables["Queue"].append(tables["Queue"][1] | {"_uuid": "q8"})
        tables["QoS"][0]["queues"][8] = "q8"
    elif spoil == "kind":
        tables["QoS"][0]["type"] = "linux-hfsc"
    else:
        port = BridgePort("eth1", 1, None)
    work = needs(tables, port=port)
    assert (work.created, work.changed, work.foreign) == ({1}, set(), set())


def test_one_transaction_makes_a_port_and_tags_every_row() -> None:
    commands = transaction(needs(healthy(), port=BridgePort("eth1", 1, None)))
    assert commands[0] == "set port eth1 qos=@p1"
    assert commands[1].startswith("--id=@p1 create qos type=linux-htb other_config:max-rate=100000000 ")
    assert sum("external_ids:trainyard=000000000000002a/1" in command for command in commands) == 9
    assert "queues:0=@p1q0" in commands[1]
    assert commands[2].startswith("--id=@p1q0 create queue other_config:priority=7 other_config:min-rate=10000000")


def test_another_rate_changes_every_row_and_replaces_none() -> None:
    work = needs(healthy(), with_floors(0.01, 0.10, 50e6))
    assert (work.created, work.changed) == (set(), {1})
    commands = transaction(work)
    assert commands[0] == "set qos s1 other_config:max-rate=50000000"
    assert commands[1] == "set queue q0 other_config=priority=7,min-rate=5000000,max-rate=50000000"
    assert [command.split()[:3] for command in commands[1:]] == [["set", "queue", f"q{n}"] for n in range(8)]


def test_another_floor_changes_only_the_rows_that_hold_it() -> None:
    work = needs(healthy(), with_floors(0.01, 0.20))
    assert transaction(work) == ["set queue q0 other_config=priority=7,min-rate=20000000,max-rate=100000000"]
    work = needs(healthy(), with_floors(0.02, 0.10))
    assert [command.split()[2] for command in transaction(work)] == [f"q{n}" for n in range(1, 8)]


def test_a_value_that_somebody_changed_or_added_is_undone_in_place() -> None:
    tables = healthy()
    tables["QoS"][0]["other_config"] = {"max-rate": "5"}
    tables["Queue"][1]["other_config"]["burst"] = "9"
    assert transaction(needs(tables)) == [
        "set qos s1 other_config:max-rate=100000000",
        "set queue q1 other_config=priority=0,min-rate=1000000,max-rate=100000000",
    ]


@pytest.mark.parametrize("user", ["port", "system", "owner"])
def test_rows_that_somebody_else_uses_too_are_left_alone_and_the_port_gets_its_own(user: str) -> None:
    tables = healthy()
    if user == "port":
        tables["Port"].append(tables["Port"][1] | {"_uuid": "p2", "name": "eth2"})
    elif user == "system":
        tables["QoS"].append(tables["QoS"][0] | {"_uuid": "s2", "external_ids": {}, "queues": {0: "q0"}})
    else:
        tables["Queue"][2]["external_ids"] = {}
    assert not needs(tables)
    assert needs(tables, with_floors(0.02, 0.10)).created == {1}


def test_queues_of_somebody_else_are_told_apart_and_not_touched() -> None:
    work = needs(healthy(tag=""))
    assert not work
    assert work.foreign == {PORT}


def test_ports_whose_work_was_refused_can_be_left_out() -> None:
    tables = healthy()
    new = BridgePort("eth2", 2, None)
    work = compare_queues(state(**tables), {PORT: with_floors(0.02, 0.10), new: WANTED})
    assert (work.created, work.changed) == ({2}, {1})
    assert (work.without({2}).created, work.without({2}).changed) == (set(), {1})
    assert (work.without({1}).created, work.without({1}).changed) == ({2}, set())
