"""New settings under full links of a real switch: no packet is lost, and what is the same is not touched."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import NamedTuple

import pytest

from controller.dataplane.queues.numbers import queue_of
from evaluation.bench.reloads.streams import Flow, Host, full_links
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.switch_fixtures import DPID, FLOWS, GATE_SECONDS, HOSTS, LINK_BPS, Bridge, Driver, sh

JOB, OTHER = (1, queue_of(0)), (2, queue_of(None))
"""The full ports, each with the queue that its packets wait in: TCP of job a, and numbered packets of no job."""

UNDER = 0.85
"""The numbered packets' share of their link: the answers of the TCP stream leave by it too."""

LONG_GATE_SECONDS = 20
"""A busy machine may renew the gate late. Then the job's packets would wait in the queue of all other traffic."""


class Held(NamedTuple):
    """The rate of a port, and the minimum rates of its queues of all other traffic and of class 0, in bit/s."""

    rate: float
    other: float
    job: float


class Change(NamedTuple):
    """The settings that a change ends with: the rates of the ports 1 to 3 by ``LINK_BPS``, and the floors."""

    rates: tuple[float, ...] = (1.0, 1.0, 1.0)
    other: float = 0.10
    job: float = 0.01


CHANGES = (
    Change(rates=(1.0, 1.0, 0.5)),
    Change(rates=(1.0, 1.0, 0.25)),
    Change(),
    Change(other=0.20, job=0.02),
    Change(other=0.05, job=0.005),
    Change(),
    Change(rates=(1.2, 1.2, 1.0)),
    Change(),
)
SOON_SECONDS = 10.0
NUMBERED_PORT = 5900


def held(bridge: Bridge) -> list[Held]:
    """Returns what the database has for each port, by one command, so that the switch has most of a box's processor."""
    ports = [bridge.port(n) for n in range(1, HOSTS + 1)]
    shown = sh(
        *("ovs-vsctl", "--format=json", "--columns=qos", "list", "port", *ports),
        *("--", "--columns=_uuid,other_config,queues", "list", "qos"),
        *("--", "--columns=_uuid,other_config", "list", "queue"),
    )
    rows, systems, queues = (json.loads(line)["data"] for line in shown.splitlines())
    rates = {uuid: float(dict(config[1])["max-rate"]) for (_, uuid), config, _ in systems}
    members = {uuid: {number: queue for number, (_, queue) in of_port[1]} for (_, uuid), _, of_port in systems}
    floors = {uuid: float(dict(config[1])["min-rate"]) for (_, uuid), config in queues}
    return [Held(rates[qos], *(floors[members[qos][queue_of(k)]] for k in (None, 0))) for ((_, qos),) in rows]


def in_namespace(name: str, command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["ip", "netns", "exec", name, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def make(driver: Driver, bridge: Bridge, change: Change) -> None:
    """Change the settings, and wait until the database has them."""
    rates = [share * LINK_BPS for share in change.rates]
    driver.do(
        "change",
        rates=[[DPID, n, rate] for n, rate in enumerate(rates, 1)],
        other_floor=change.other,
        job_floor=change.job,
    )
    wanted = [Held(rate, round(rate * change.other), round(rate * change.job)) for rate in rates]
    wait_until(lambda: held(bridge) == wanted, SOON_SECONDS, what=f"the change to {change}")


def test_changes_of_rates_and_floors_lose_no_packet_of_full_links(
    bridge: Bridge, driver: Driver, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.do("change", gate_seconds=LONG_GATE_SECONDS)
    driver.do("apply", flows=FLOWS, classes={"a": 0, "b": 1})
    wait_until(bridge.pings, 5, what="a ping")
    rows = [bridge.qos(n) for n in range(1, HOSTS + 1)]
    rules, ages = bridge.flows(), bridge.ages()
    status, events = driver.status(), driver.do("events")
    counts = []
    one, other = (Host(f"{bridge.name}h{n}", f"10.0.0.{n}") for n in (1, 2))
    flows = {NUMBERED_PORT: Flow("datagrams", UNDER * LINK_BPS)}
    port = FLOWS["a"][1][2]
    # Its answers are the job's too, because they go to the same port.
    with full_links(in_namespace, one, other, flows, port, source_port=port) as streams:
        time.sleep(2.0)
        began = time.monotonic()
        for change in CHANGES:
            counts.append((bridge.class_count(*JOB), bridge.class_count(*OTHER)))
            make(driver, bridge, change)
            time.sleep(0.5)
        took = time.monotonic() - began
    counts.append((bridge.class_count(*JOB), bridge.class_count(*OTHER)))
    numbered = streams.numbered[NUMBERED_PORT]
    waiting = [(job.waiting, other.waiting) for job, other in counts[:-1]]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(CHANGES)} changes in {took:.1f} s: {numbered.sent - numbered.came} of {numbered.sent} numbered "
            f"packets lost; TCP {streams.tcp_bps / 1e6:.1f} Mbit/s; waiting at the changes (TCP, numbered): {waiting}\n"
        )
    assert (numbered.came, numbered.late) == (numbered.sent, 0)
    assert sum(job > 0 for job, _ in waiting) > len(waiting) / 2, "the link was full"
    for of_place in zip(*counts, strict=True):
        assert {count.dropped for count in of_place} == {of_place[0].dropped}
        assert sorted(of_place, key=lambda count: count.sent) == list(of_place), "the counters were not begun again"
    assert [bridge.qos(n) for n in range(1, HOSTS + 1)] == rows
    assert bridge.flows() == rules
    assert all(bridge.ages()[port] > age + took for port, age in ages.items())
    now = driver.status()
    assert (now["repairs"], now["ports"], now["problems"]) == (status["repairs"], status["ports"], status["problems"])
    assert driver.do("events") == events
    driver.do("change", gate_seconds=GATE_SECONDS)
