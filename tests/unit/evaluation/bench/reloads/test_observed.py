"""What the bench of reloads reads of switches: rules with their age, queues with their versions."""

from __future__ import annotations

import json

from evaluation.bench.reloads.observed import (
    Count,
    Held,
    begun_again,
    by_port,
    parsed_floors,
    parsed_queues,
    parsed_rules,
    queue_by_port,
    touched_queues,
    touched_rules,
)

FLOWS = """\
 cookie=0x7473000000000001, duration=0.5s, table=0, n_packets=9, n_bytes=90, hard_timeout=20, actions=resubmit(,1)
 cookie=0x7472000100000002, duration=12.25s, table=1, n_packets=3, n_bytes=300, tcp,tp_dst=5002 actions=set_queue:2
 cookie=0x7472000100000002, duration=12.25s, table=1, n_packets=4, n_bytes=400, tcp,tp_dst=5003 actions=set_queue:1
 cookie=0x0, duration=99s, table=2, n_packets=0, n_bytes=0, priority=0 actions=NORMAL
"""
TO_C, TO_D = "table=1, tcp,tp_dst=5002 actions=set_queue:2", "table=1, tcp,tp_dst=5003 actions=set_queue:1"
CLASSES = """\
class htb 1:fffe root rate 10Mbit ceil 10Mbit burst 1250b cburst 1250b
class htb 1:1 parent 1:fffe prio 7 rate 1Mbit ceil 10Mbit burst 1563b cburst 1563b
class htb 1:2 parent 1:fffe prio 0 rate 100Kbit ceil 10Mbit burst 1563b cburst 1563b
"""


def test_rules_are_the_controllers_own_without_counters_and_the_gate() -> None:
    held = parsed_rules(FLOWS)
    assert held == {TO_C: Held("7472000100000002", 12.25), TO_D: Held("7472000100000002", 12.25)}
    assert queue_by_port(held) == {5002: 2, 5003: 1}


def test_a_rule_is_touched_that_is_gone_or_young_or_has_another_cookie() -> None:
    before = dict.fromkeys(("stays", "gone", "made again", "of another epoch"), Held("7472", 30.0))
    after = {
        "stays": Held("7472", 32.0),
        "made again": Held("7472", 1.0),
        "of another epoch": Held("7472ff", 32.0),
        "new": Held("7472", 0.0),
    }
    assert touched_rules(before, after, 2.0) == ("gone", "made again", "of another epoch")


def _answer(version: str) -> str:
    """The database's answer for one port with two queues, and one without; ``version``: of the second queue."""

    def uuid(name: str) -> list[str]:
        return ["uuid", name]

    queues = [[0, uuid("q0")], [1, uuid("q1")]]
    return json.dumps(
        [
            {"rows": [{"name": "s1-eth1", "qos": uuid("qos")}, {"name": "s1", "qos": ["set", []]}]},
            {"rows": [{"_uuid": uuid("qos"), "_version": uuid("v"), "queues": ["map", queues]}]},
            {"rows": [{"_uuid": uuid("q0"), "_version": uuid("v")}, {"_uuid": uuid("q1"), "_version": uuid(version)}]},
        ]
    )


def test_a_queue_is_touched_that_is_gone_or_was_written() -> None:
    before, after = parsed_queues(_answer("1")), parsed_queues(_answer("2"))
    assert before == {"s1-eth1": ("qos v", "q0 v", "q1 1")}
    assert touched_queues(before, before, ["s1-eth1"]) == ()
    assert touched_queues(before, after, ["s1-eth1"]) == ("q1 1",)
    assert touched_queues(before, after, []) == ()
    assert touched_queues(before, after, ["s1-eth1"], rows_only=True) == ()
    assert touched_queues(before, {}, ["s1-eth1"], rows_only=True) == ("q0", "q1", "qos")


def test_counters_have_begun_again_that_are_lower_or_gone() -> None:
    before = {("s1-eth1", number): Count(10, 0) for number in range(3)}
    after = {("s1-eth1", 0): Count(10, 1), ("s1-eth1", 1): Count(9, 0)}
    assert begun_again(before, after) == (("s1-eth1", 1), ("s1-eth1", 2))


def test_floors_are_those_of_queues_in_bits_a_second() -> None:
    assert parsed_floors(CLASSES) == {0: 1e6, 1: 1e5}


def test_each_port_has_its_own_part_of_what_is_printed() -> None:
    discipline = "qdisc htb 1: root refcnt 2 r2q 10 default 0x1\n"
    parts = by_port(["s1-eth1", "s1-eth2"], f"{discipline}{CLASSES}{discipline}")
    assert parsed_floors(parts["s1-eth1"]) == {0: 1e6, 1: 1e5}
    assert parsed_floors(parts["s1-eth2"]) == {}
