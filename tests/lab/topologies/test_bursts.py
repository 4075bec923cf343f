"""A link carries its rate from the first byte on: a fan-out hardly gets ahead of it, and bulk reaches it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import pytest

from host_reporter.nic.tree import MTU, burst_bytes
from tests.support.paths import ROOT
from topologies import networks
from topologies.emulation import Emulation, emulate
from topologies.nodes import DEFAULT_SEGMENTS

pytestmark = pytest.mark.usefixtures("alone")

PORT = 5301
RECEIVERS = ("h2", "h3", "h4", "h5")
ON_THE_WIRE = 1514 / 1448
"""Bytes of a full packet for each byte that it carries."""
FAN_OUT_BYTES = (100_000, 140_000, 200_000)
BULK_BYTES = 2_000_000
LEAST_SHARE = 0.95
ROUNDS, BULK_ROUNDS = 3, 8

Datapath = Literal["kernel", "user"]
LINK_BPS: dict[Datapath, float] = {"kernel": 10e6, "user": 5e6}
"""In a box, a switch in user space is no match for a faster link."""


@pytest.fixture(params=LINK_BPS)
def network(request: pytest.FixtureRequest) -> Iterator[Emulation]:
    """One switch that forwards everything without a controller."""
    datapath: Datapath = request.param
    topo = networks.Testbed(servers=1 + len(RECEIVERS), link_bps=LINK_BPS[datapath], datapath=datapath)
    with emulate(topo, datapath=datapath) as emulation:
        emulation.run(None, ["ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", "actions=NORMAL"])
        yield emulation


def test_a_fan_out_gets_a_burst_and_the_last_packet_for_nothing_and_no_more(network: Emulation) -> None:
    most = burst_bytes(network.plugs()[0].rate_bps) + DEFAULT_SEGMENTS * MTU
    assert most < 16_000
    for count in FAN_OUT_BYTES:
        for _ in range(ROUNDS):
            # Other work of the machine can make a transfer later, never earlier.
            assert free_bytes(network, RECEIVERS, count) <= most


def test_bulk_reaches_the_rate(network: Emulation) -> None:
    for _ in range(BULK_ROUNDS):
        # Other work of the machine can make a transfer later, never earlier: one of several is as quick as the link.
        lost = -free_bytes(network, RECEIVERS[:1], BULK_BYTES)
        share = BULK_BYTES * ON_THE_WIRE / (BULK_BYTES * ON_THE_WIRE + lost)
        if share > LEAST_SHARE:
            break
    assert share > LEAST_SHARE


def free_bytes(network: Emulation, receivers: Sequence[str], count: int) -> float:
    """Return the bytes on the wire that came before the link's rate allows them, at the end of a fan-out of h1.

    It sends ``count`` bytes in all, and begins after a pause. Negative: the link carried less than its rate.
    """

    def start(host: str, *words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.support.lab.fan_out_cases", *map(str, words)]
        return network.popen(host, command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    receiving = [start(host, "receive", PORT) for host in receivers]
    _wait_until_ready(receiving)
    sender = start("h1", "send", PORT, count // len(receivers), *map(network.address, receivers))
    _wait_until_ready([sender])
    began, _ = sender.communicate("\n", timeout=60)
    arrivals = [json.loads(process.communicate(timeout=60)[0]) for process in receiving]
    assert sum(host[-1][1] for host in arrivals) == count
    seconds = max(host[-1][0] for host in arrivals) - float(began)
    return count * ON_THE_WIRE - network.plugs()[0].rate_bps / 8 * seconds


def _wait_until_ready(processes: Iterable[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
