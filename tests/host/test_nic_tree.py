"""The host's HTB tree on a real (virtual) cable at 100 Mbit/s: order, floor, and short waits for other traffic."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from controller.code_points import POOL_2
from host_reporter.nic.interface import htb_tree
from tests.support.host.two_hosts import RECEIVER, Rates, TwoHosts, two_hosts
from tests.support.rounds import first_that

RATE_BPS = 100e6
CLASS_FLOOR = 0.01
OTHER_FLOOR = 0.10
START, STOP = 0.8, 3.3
"""The window that is measured, in seconds; before it the first burst drains."""


def _bps(count: int) -> float:
    return count * 8 / (STOP - START)


@pytest.fixture(scope="module")
def hosts() -> Iterator[TwoHosts]:
    with two_hosts() as made:
        tree = htb_tree(made.interface, RATE_BPS, POOL_2, CLASS_FLOOR, OTHER_FLOOR)
        done = made.run(made.sender, "tc", "-batch", "-", text="\n".join(tree) + "\n")
        assert done.returncode == 0, done.stderr
        assert "quantum" not in done.stderr, "the kernel warns of a quantum that does not fit"
        yield made


def rates(hosts: TwoHosts, flows: dict[int, int]) -> Rates:
    return hosts.rates(flows, start=START, stop=STOP, count=lambda: hosts.class_bytes(hosts.interface))


def test_a_higher_class_goes_first(hosts: TwoHosts) -> None:
    def is_in_order(found: Rates) -> bool:
        first, second = found.received[7001], found.received[7002]
        return first >= 20 * second and 0.7 * RATE_BPS < first + second < 1.01 * RATE_BPS

    flows = {7001: POOL_2.classes[0], 7002: POOL_2.classes[3]}
    found = first_that(is_in_order, lambda: rates(hosts, flows))
    assert is_in_order(found), found
    assert found.sent["13"] >= 0.5 * CLASS_FLOOR * RATE_BPS, "the floor of the lower class"


def test_other_traffic_keeps_its_floor(hosts: TwoHosts) -> None:
    flows = {7003: POOL_2.classes[0], 7004: 0}
    found = first_that(lambda found: found.sent["1f"] < 0.15 * RATE_BPS, lambda: rates(hosts, flows))
    assert found.sent["1f"] >= 0.08 * RATE_BPS, found
    assert found.sent["1f"] < 0.15 * RATE_BPS, "a floor, not a share"


@pytest.mark.parametrize(("bulk", "most_ms"), [(0, 50.0), (1, 250.0)], ids=["alone", "behind-bulk"])
def test_a_ping_stays_short_when_every_class_is_full(hosts: TwoHosts, bulk: int, most_ms: float) -> None:
    """Seven classes full of bulk TCP; the ping is other traffic, alone in its leaf or behind bulk of its own kind."""
    flows = {7010 + k: POOL_2.classes[k] for k in range(7)} | {7020 + n: 0 for n in range(bulk)}

    def pinged() -> tuple[list[float], float]:
        with hosts.bytes_by_port(flows, start=START, stop=STOP) as run:
            ping = hosts.run(hosts.sender, "ping", "-n", "-i", "0.01", "-w", "3", RECEIVER)
            got = run.result()
        return sorted(map(float, re.findall(r"time=([0-9.]+) ms", ping.stdout))), _bps(sum(got.values()))

    def is_short(found: tuple[list[float], float]) -> bool:
        times, received = found
        return len(times) >= 100 and times[int(len(times) * 0.99)] < most_ms and received > 0.7 * RATE_BPS

    times, received = first_that(is_short, pinged)
    assert len(times) >= 100
    assert times[int(len(times) * 0.99)] < most_ms, f"p50 {times[len(times) // 2]} ms, max {times[-1]} ms"
    assert received > 0.7 * RATE_BPS, "the link was not full"


def test_bulk_reaches_the_rate_though_an_offloaded_packet_is_many_times_the_burst() -> None:
    """A NIC's limits of offload are not the agent's to change, so a packet may stand for 64 KB."""
    rate_bps = 10e6
    with two_hosts() as slow:
        tree = htb_tree(slow.interface, rate_bps, POOL_2, CLASS_FLOOR, OTHER_FLOOR)
        assert slow.run(slow.sender, "tc", "-batch", "-", text="\n".join(tree) + "\n").returncode == 0

        def on_the_wire() -> float:
            with slow.bytes_by_port({7030: POOL_2.classes[0]}, start=START, stop=STOP) as run:
                (received,) = run.result().values()
            # Ethernet, IP and TCP headers take 4.4 % of a full packet.
            return _bps(received) * 1514 / 1448

        found = first_that(lambda bps: 0.95 * rate_bps < bps < 1.05 * rate_bps, on_the_wire)
    assert 0.95 * rate_bps < found < 1.05 * rate_bps


def test_the_agent_makes_the_tree_and_takes_it_away() -> None:
    """``Nic`` in the sender's namespace: made anew for another plan, adopted if it was there, a foreign one kept."""
    with two_hosts() as made:
        for case in ("made", "reordered", "renumbered", "left_behind", "killed", "adopted", "foreign"):
            program = f"from tests.support.host.nic_cases import {case}; {case}({made.interface!r})"
            done = made.run(made.sender, sys.executable, "-c", program)
            assert done.returncode == 0, f"{case}: {done.stderr}"
