"""The dataplane on a real switch with a kernel datapath: queues, transactions, restarts of either side, fail open."""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from controller.model import Snapshot, Switch
from controller.rules.compiler import compile_rules
from controller.rules.rule import Table
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.switch_fixtures import (
    ANSWER_SECONDS,
    BRIDGE,
    DPID,
    FLOWS,
    GATE_SECONDS,
    HOSTS,
    LINK_BPS,
    Bridge,
    Driver,
    sh,
)
from topologies import openvswitch


def job_rules(bridge: Bridge) -> int:
    return sum("tp_dst" in rule for rule in classifying(bridge))


def classifying(bridge: Bridge) -> list[str]:
    return [rule for rule in bridge.flows() if rule.startswith(f"table={Table.CLASSIFY.value},")]


def test_the_pipeline_is_there_the_queues_are_proven_and_traffic_flows(bridge: Bridge, driver: Driver) -> None:
    proofs = driver.status()["ports"]
    assert [(proof["port"], proof["problem"]) for proof in proofs] == [(n, None) for n in range(1, HOSTS + 1)]
    assert all(count >= 3 for proof in proofs for count in proof["packets"].values())
    assert bridge.gate_is_open()
    assert bridge.pings()
    pipeline = compile_rules(
        Snapshot(0.0, {}, (), switches=(Switch(DPID),)), {}, mode="classified", forwarding="normal"
    )
    held = Counter(rule.split(",")[0].split()[0] for rule in bridge.flows())
    assert held == Counter(f"table={rule.table.value}" for rule in pipeline)


def test_every_port_has_eight_queues_of_its_links_rate_and_the_default_is_the_lowest(
    bridge: Bridge, driver: Driver
) -> None:
    assert driver.status()["ready"]
    for n in range(1, HOSTS + 1):
        qos = sh("ovs-vsctl", "get", "port", bridge.port(n), "qos").strip()
        queues = json.loads(sh("ovs-vsctl", "--format=json", "--columns=queues", "list", "qos", qos))["data"][0][0][1]
        assert [number for number, _ in queues] == list(range(8))
        configs = {
            number: dict(json.loads(sh("ovs-vsctl", "--format=json", "--columns=other_config", "list", "queue", uuid))[
                "data"][0][0][1])
            for number, (_, uuid) in queues
        }  # fmt: skip
        assert [int(configs[q]["priority"]) for q in range(8)] == [7, 0, 1, 2, 3, 4, 5, 6]
        assert {float(config["max-rate"]) for config in configs.values()} == {LINK_BPS}
        assert [float(configs[q]["min-rate"]) / LINK_BPS for q in (0, 1, 7)] == [0.10, 0.01, 0.01]


def test_only_the_difference_is_sent_and_it_is_soon_in_force(bridge: Bridge, driver: Driver) -> None:
    assert driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})["flow_mods"] == 3
    before = bridge.flows()
    assert sum("set_queue:1,set_field:59->ip_dscp" in rule for rule in classifying(bridge)) == 2
    assert driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})["flow_mods"] == 0
    assert bridge.flows() == before
    assert driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 6})["flow_mods"] == 1
    after = bridge.flows()
    assert len(after) == len(before)
    assert len(after.items() - before.items()) == 1
    assert driver.do("apply", flows={"b": FLOWS["b"]}, classes={"b": 6})["flow_mods"] == 2
    assert job_rules(bridge) == 1


def test_a_jobs_bytes_are_counted_in_its_class_and_a_new_plan_moves_them(bridge: Bridge, driver: Driver) -> None:
    def sent(classes: dict[str, int]) -> dict[int | None, int]:
        driver.do("apply", flows=FLOWS, classes=classes)
        before = {k: count for _, k, count in driver.do("bytes")}
        bridge.send_tcp(1, 2, 5000, 400_000)
        return {k: count - before[k] for _, k, count in driver.do("bytes")}

    for service_class in (4, 2):
        risen = sent({"a": service_class, "b": 0})
        assert risen[service_class] > 400_000
        assert sum(count for k, count in risen.items() if k not in (service_class, None)) < 10_000


@pytest.mark.parametrize("bundles", [True, False])
def test_a_refused_rule_takes_the_whole_change_back(bridge: Bridge, driver: Driver, bundles: bool) -> None:
    driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})
    driver.do("bundles", on=bundles)
    before = set(bridge.flows())
    applied = driver.do("apply", flows=FLOWS, classes={"a": 4, "b": 5}, bad_port=0xFFFFFFF5)
    driver.do("bundles", on=True)
    assert "refused a rule in table 6: OFPBAC_BAD_OUT_PORT" in applied["errors"][0]
    assert set(bridge.flows()) == before
    assert driver.do("apply", flows=FLOWS, classes={"a": 4, "b": 5})["flow_mods"] == 3


@pytest.mark.parametrize("bundles", [True, False])
def test_a_full_table_refuses_and_keeps_what_it_has(bridge: Bridge, driver: Driver, bundles: bool) -> None:
    driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})
    before = set(bridge.flows())
    limit = sum(rule.startswith("table=1") for rule in before) + 2
    sh("ovs-vsctl", "--", "--id=@t", "create", "Flow_Table", f"flow_limit={limit}", "overflow_policy=refuse",
       "--", "set", "bridge", BRIDGE, "flow_tables:1=@t")  # fmt: skip
    try:
        driver.do("bundles", on=bundles)
        many = {f"j{i}": [["h1", "h2", 6000 + i]] for i in range(20)}
        applied = driver.do("apply", flows=many, classes=dict.fromkeys(many, 1))
        assert "its flow table is full" in applied["errors"][0]
        assert set(bridge.flows()) == before
    finally:
        sh("ovs-vsctl", "clear", "bridge", BRIDGE, "flow_tables")
        driver.do("bundles", on=True)
    assert driver.do("apply", flows=many, classes=dict.fromkeys(many, 1))["errors"] == []
    assert job_rules(bridge) == 20


def test_rules_of_others_are_left_alone_and_deleted_ones_of_ours_come_back(bridge: Bridge, driver: Driver) -> None:
    driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})
    wanted = set(bridge.flows())
    sh("ovs-ofctl", "-O", "OpenFlow13", "add-flow", BRIDGE, "cookie=0xbeef,table=1,priority=9,udp,actions=goto_table:6")
    sh("ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE, "table=1,tcp")
    wait_until(lambda: set(bridge.flows()) == wanted, 10, what="the rules' return")
    assert "beef" in bridge.flows(ours=False).values()
    sh("ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE, "cookie=0xbeef/-1")


def test_a_new_controller_disturbs_no_flow_that_keeps_its_class(bridge: Bridge, driver: Driver) -> None:
    driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})
    cookies = bridge.flows()
    ages = bridge.ages()
    driver.stop()
    driver.start()
    driver.wait_ready()
    assert bridge.flows() == cookies
    assert driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 2})["flow_mods"] == 1
    assert bridge.ages()["5000"] > ages["5000"] + 1.0
    assert bridge.ages()["5001"] < ages["5001"] + 1.0


def test_a_restarted_switch_gets_its_rules_again(bridge: Bridge, driver: Driver) -> None:
    driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})
    wanted = set(bridge.flows())
    known = len(driver.do("events"))
    sh("ovs-appctl", "-t", "ovs-vswitchd", "exit")
    wait_until(lambda: not driver.status()["connected"], 10, what="the disconnection")
    openvswitch.start_switch()
    driver.wait_ready()
    assert set(bridge.flows()) == wanted
    assert driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})["flow_mods"] == 0
    # What notices first tells: the closed connection, or a look at the switch that finds it gone.
    gone, *_, back = driver.do("events")[known:]
    assert not gone.endswith("is ready")
    assert back.endswith("is ready")
    wait_until(bridge.pings, 10, what="a ping")


def test_without_the_controller_packets_flow_and_priorities_end(bridge: Bridge, driver: Driver) -> None:
    driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})
    driver.stop()
    assert bridge.pings()
    wait_until(lambda: not bridge.gate_is_open(), GATE_SECONDS + 3, what="the gate's closing")
    rule = next(rule for rule in bridge.flows() if rule.startswith("table=0"))
    assert rule.endswith(f"actions=goto_table:{Table.FORWARD:d}")
    wait_until(bridge.pings, 5, what="a ping")
    before = bridge.queue_bytes(2)[1]
    bridge.send_tcp(1, 2, 5000, 100_000)
    assert bridge.queue_bytes(2)[1] == before
    driver.start()
    driver.wait_ready()
    assert bridge.gate_is_open()


def test_a_switch_that_hangs_is_told_of_and_taken_back(bridge: Bridge, driver: Driver) -> None:
    driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})
    pid = int((openvswitch.RUN_FOLDER / "ovs-vswitchd.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        applied = driver.do("apply", flows=FLOWS, classes={"a": 3, "b": 4})
        assert time.monotonic() - began < 3 * ANSWER_SECONDS
        assert applied["errors"] or applied["per_switch"] == []
        wait_until(lambda: not driver.status()["ready"], 5 * ANSWER_SECONDS, what="the report")
    finally:
        os.kill(pid, signal.SIGCONT)
    driver.wait_ready()
    driver.do("apply", flows=FLOWS, classes={"a": 3, "b": 4})
    assert sum("set_queue:4" in rule for rule in classifying(bridge)) == 2


def test_a_new_port_gets_queues_and_a_port_that_is_gone_leaves_no_rows(bridge: Bridge, driver: Driver) -> None:
    def rows() -> int:
        return len(json.loads(sh("ovs-vsctl", "--format=json", "--columns=_uuid", "list", "QoS"))["data"])

    before = rows()
    bridge.add_host(HOSTS + 1)
    wait_until(lambda: len(driver.status()["ports"]) == HOSTS + 1, 10, what="the new port's proof")
    assert rows() == before + 1
    bridge.remove_host(HOSTS + 1)
    wait_until(lambda: rows() == before, 10, what="the collection")
    driver.wait_ready()


def test_a_bundle_and_single_messages_take_about_as_long(driver: Driver, capsys: pytest.CaptureFixture[str]) -> None:
    medians = []
    for bundles in (True, False):
        driver.do("bundles", on=bundles)
        seconds = sorted(driver.do("latency", flows=FLOWS, count=300))
        way = "bundle" if bundles else "step by step"
        with capsys.disabled():
            sys.stdout.write(
                f"\napply, 3 rules, {way}: p50 {seconds[150] * 1e3:.1f} ms, p99 {seconds[296] * 1e3:.1f} ms\n"
            )
        medians.append(statistics.median(seconds))
    driver.do("bundles", on=True)
    assert max(medians) < 10 * min(medians)


def test_a_switch_that_ignores_set_queue_is_reported(tmp_path: Path) -> None:
    """The userspace datapath: it takes set_queue, and sends everything by the default queue."""
    driver = Driver(free_port(), tmp_path)
    deaf = Bridge(driver.openflow_port, datapath="netdev", name="tydeaf", dpid=DPID + 1)
    try:
        status = wait_until(
            lambda: (found := driver.status(DPID + 1)).get("reason") not in (None, "being set up") and found,
            20,
            what="the verdict",
        )
        assert "the switch ignores set_queue" in status["reason"]
        assert not status["ready"]
        assert not deaf.gate_is_open()
        wait_until(deaf.pings, 5, what="a ping")
    finally:
        driver.stop()
        deaf.close()
