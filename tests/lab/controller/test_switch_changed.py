"""Somebody else changes a real switch under the controller's hands: packets go on, and all is soon as it was."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.lab.switch_fixtures import FLOWS, HOSTS, LINK_BPS, Bridge, Driver, sh

SOON_SECONDS = 6.0
"""What a repair may take here: under a second, and what a busy machine adds to it and to each look of the test."""

PINGS_A_SECOND = 50
GATE = "cookie=0x7473000000000000/-1"


@contextmanager
def pinging(bridge: Bridge) -> Iterator[dict[str, int]]:
    """Ping from one host to another all the while; then ``sent`` and ``lost`` are known."""
    counts: dict[str, int] = {}
    command = ["ip", "netns", "exec", f"{bridge.name}h1", "ping", "-i", str(1 / PINGS_A_SECOND), "-W", "1", "10.0.0.2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield counts
    finally:
        # As Ctrl-C: it tells what it has counted.
        process.send_signal(2)
        out, _ = process.communicate(timeout=10)
    found = re.search(r"(\d+) packets transmitted, (\d+) received", out)
    assert found is not None, out
    counts |= {"sent": int(found[1]), "lost": int(found[1]) - int(found[2])}


def planned(bridge: Bridge, driver: Driver) -> set[str]:
    driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})
    wait_until(bridge.pings, 5, what="a ping")
    return set(bridge.flows())


def told(pings: dict[str, int]) -> str:
    return f"{pings['lost']} of {pings['sent']} pings lost, {PINGS_A_SECOND} a second"


def said(driver: Driver) -> list[str]:
    text = Path(driver.folder / "driver.log").read_text()
    return [line for line in text.splitlines() if "somebody else changed it" in line]


@pytest.mark.parametrize(
    "which", [(), ("table=0",), ("table=1",), ("table=6",), ("table=1,tcp,tp_dst=5001",), (GATE,)], ids=str
)
def test_rules_that_somebody_deletes_are_back_while_packets_flow(
    bridge: Bridge, driver: Driver, which: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = planned(bridge, driver)
    before = driver.status()["repairs"]
    with pinging(bridge) as pings:
        time.sleep(0.5)
        bridge.rules("del-flows", *which)
        began = time.monotonic()
        wait_until(
            lambda: set(bridge.flows()) == wanted and bridge.gate_is_open(), SOON_SECONDS, what="the rules' return"
        )
        took = time.monotonic() - began
        time.sleep(0.5)
    with capsys.disabled():
        sys.stdout.write(f"\ndel-flows {' '.join(which) or 'all'}: back after {took:.2f} s; {told(pings)}\n")
    assert pings["lost"] <= PINGS_A_SECOND, "packets are lost for less than a second, and for milliseconds as a rule"
    # The gate is renewed all the time, which may come before the look.
    assert driver.status()["repairs"] - before in ((0, 1) if which == (GATE,) else (1,))
    assert driver.status()["ready"]


def test_a_thousand_rules_that_go_at_once_are_one_repair(
    bridge: Bridge, driver: Driver, capsys: pytest.CaptureFixture[str]
) -> None:
    many = {f"j{i}": [["h1", "h2", 6000 + i]] for i in range(1000)}
    driver.do("apply", flows=many, classes=dict.fromkeys(many, 1))
    wanted = set(bridge.flows())
    before = driver.status()["repairs"]
    with pinging(bridge) as pings:
        bridge.rules("del-flows")
        began = time.monotonic()
        wait_until(lambda: set(bridge.flows()) == wanted, 4 * SOON_SECONDS, what="the rules' return")
        took = time.monotonic() - began
    with capsys.disabled():
        sys.stdout.write(f"\n1,000 jobs' rules and the pipeline: back after {took:.2f} s; {told(pings)}\n")
    assert pings["lost"] <= PINGS_A_SECOND, "the pipeline does not wait for the jobs' rules"
    assert driver.status()["repairs"] == before + 1


@pytest.mark.parametrize("which", ["", "table=6,", "table=1,tcp,tp_dst=5001,"])
def test_rules_that_somebody_makes_drop_are_put_back(bridge: Bridge, driver: Driver, which: str) -> None:
    wanted = planned(bridge, driver)
    with pinging(bridge) as pings:
        bridge.rules("mod-flows", f"{which}actions=drop")
        wait_until(
            lambda: set(bridge.flows()) == wanted and bridge.gate_is_open(), SOON_SECONDS, what="the rules' return"
        )
        wait_until(bridge.pings, SOON_SECONDS, what="a ping")
    assert pings["lost"] <= 2 * PINGS_A_SECOND


def test_a_rule_of_somebody_else_in_our_place_is_replaced(bridge: Bridge, driver: Driver) -> None:
    wanted = planned(bridge, driver)
    bridge.rules("add-flow", "cookie=0xbeef,table=6,priority=0,actions=drop")
    wait_until(lambda: set(bridge.flows()) == wanted, SOON_SECONDS, what="the rule's return")
    assert "beef" not in bridge.flows(ours=False).values()


def test_our_own_changes_and_the_gates_renewals_are_no_repairs(bridge: Bridge, driver: Driver) -> None:
    planned(bridge, driver)
    before = driver.status()["repairs"]
    for classes in ({"a": 3, "b": 4}, {"a": 0}, {"a": 0, "b": 1}):
        assert driver.do("apply", flows=FLOWS, classes=classes)["errors"] == []
        time.sleep(0.2)
    ages = bridge.ages()
    time.sleep(3.0)
    assert all(bridge.ages()[port] > age + 2.5 for port, age in ages.items()), "unchanged rules are not sent again"
    status = driver.status()
    assert (status["repairs"], status["ready"]) == (before, True)


def test_each_repair_is_said_with_what_was_missing(bridge: Bridge, driver: Driver) -> None:
    planned(bridge, driver)
    driver.stop()
    driver.start()
    driver.wait_ready()
    wanted = planned(bridge, driver)
    known = len(said(driver))
    bridge.rules("del-flows", "table=1,tcp,tp_dst=5001")
    wait_until(lambda: set(bridge.flows()) == wanted, SOON_SECONDS, what="the rule's return")
    (line,) = wait_until(lambda: said(driver)[known:], SOON_SECONDS, what="the line in the log")
    what = "1 rule that had been deleted or changed was put back (1 in table 1)"
    assert what in line
    assert any(what in problem for problem in driver.status()["problems"])


# Queues --------------------------------------------------------------------------------------------------------------


def proven(driver: Driver) -> list[int]:
    return [proof["port"] for proof in driver.status()["ports"] if proof["problem"] is None]


def repaired(driver: Driver, before: dict[str, Any], seconds: float) -> None:
    wait_until(lambda: driver.status()["repairs"] > before["repairs"], seconds, what="the repair")
    assert driver.status()["ready"]
    assert proven(driver) == list(range(1, HOSTS + 1))


def test_queues_that_somebody_clears_are_soon_there_again(bridge: Bridge, driver: Driver) -> None:
    before = driver.status()
    sh("ovs-vsctl", "clear", "port", bridge.port(2), "qos")
    repaired(driver, before, 10)
    assert bridge.qos(2) != "[]"


def test_queues_that_somebody_edits_are_made_as_they_were(bridge: Bridge, driver: Driver) -> None:
    before = driver.status()
    old = bridge.qos(2)
    sh("ovs-vsctl", "set", "qos", old, "other_config:max-rate=1000000")
    repaired(driver, before, 20)
    assert bridge.qos(2) == old
    rate = sh("ovs-vsctl", "get", "qos", old, "other_config:max-rate").strip().strip('"')
    assert float(rate) == LINK_BPS


def test_a_port_with_queues_of_somebody_else_is_named_and_left_and_the_others_are_ordered(
    bridge: Bridge, driver: Driver
) -> None:
    foreign = sh("ovs-vsctl", "--", "--id=@q", "create", "qos", "type=linux-htb", "--", "set", "port", bridge.port(2),
                 "qos=@q").split()[0]  # fmt: skip
    try:
        wait_until(lambda: proven(driver) == [1, 3], 20, what="the report")
        status = driver.status()
        assert (status["ready"], status["reason"]) == (True, None)
        said = f"1 of its 3 ports is not ordered: port {bridge.port(2)} has queues that are not Trainyard's"
        assert any(said in problem for problem in status["problems"])
        assert bridge.qos(2) == foreign
        assert driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})["errors"] == []
        before = bridge.queue_bytes(3)[2]
        bridge.send_tcp(1, 3, 5001, 100_000)
        assert bridge.queue_bytes(3)[2] > before + 100_000
        assert bridge.pings()
    finally:
        sh("ovs-vsctl", "clear", "port", bridge.port(2), "qos", "--", "destroy", "qos", foreign)
    wait_until(lambda: proven(driver) == [1, 2, 3], 20, what="the port's return")
