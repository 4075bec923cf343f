"""A band for each job at a real (virtual) interface: strict order inside a band, floors, turns, and nothing left."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from typing import NamedTuple

import pytest

from controller.code_points import POOL_2
from evaluation.bench.support.waiting import wait_until
from host_reporter.nic.tree import htb_tree
from tests.support.host.tensorlights_agent import RATE_BPS, Agent, leaves, tc, whole
from tests.support.host.tensorlights_traffic import fan_out, measured
from tests.support.host.two_hosts import TwoHosts
from tests.support.rounds import first_that

EACH = ("--nic-bands", "each")
PORTS = tuple(range(7100, 7108))
"""Eight jobs: two in each of the first four bands."""

BANDS = {port: f"170{(port - 7100) // 2}" for port in PORTS}
"""The leaf of each port at the root."""

TURN_SECONDS = 1.5
"""Measure for so long within a turn."""


def give_jobs(agent: Agent, *ports: int) -> None:
    for port in ports:
        agent.job(f"j{port}", port, arrival=float(port))


def ranks(hosts: TwoHosts) -> dict[int, tuple[str, str]]:
    """The leaf of each port at the root, and its leaf inside that leaf's tree."""
    bands = leaves(hosts)
    inside = {band: leaves(hosts, inside=f"{0x5000 + int(band, 16):x}") for band in set(bands.values())}
    return {port: (band, inside[band].get(port, "")) for port, band in bands.items()}


def sent_bytes(hosts: TwoHosts) -> dict[int, int]:
    """Bytes that the leaf of each port has sent. TCP sends some twice at such rates, so a receiver counts fewer."""
    shown = tc(hosts, "-s", "class", "show", "dev", hosts.interface)
    sent = dict(re.findall(r"^class htb (\S+) .*\n Sent (\d+) bytes", shown, re.M))
    return {port: int(sent[f"{0x5000 + int(band, 16):x}:{leaf}"]) for port, (band, leaf) in ranks(hosts).items()}


def test_jobs_of_one_band_go_one_after_the_other(hosts: TwoHosts, agent: Agent) -> None:
    before = whole(hosts)
    give_jobs(agent, *PORTS)
    got = {}

    def is_full(counts: dict[int, int]) -> bool:
        return 8 * sum(counts.values()) / 2.0 > 0.7 * RATE_BPS

    as_wanted = {
        "each": lambda counts: is_full(counts) and counts[7100] > 10 * counts[7101],
        "shared": lambda counts: is_full(counts) and counts[7100] < 3 * counts[7101],
    }
    for sharing in ("each", "shared"):
        agent.start("--nic-bands", sharing, nic="tls-one")
        wait_until(lambda: len(leaves(hosts)) == len(PORTS))
        if sharing == "each":
            assert leaves(hosts) == BANDS
            assert ranks(hosts)[7100] == ("1700", "1000")
            assert ranks(hosts)[7103] == ("1701", "1020")
        got[sharing] = first_that(as_wanted[sharing], lambda: measured(hosts, 7100, 7101, settle=1.0, seconds=2.0))
        if sharing == "each":
            shown = json.loads(tc(hosts, "-s", "-j", "qdisc", "show", "dev", hosts.interface))
            (tree,) = (qdisc for qdisc in shown if qdisc["handle"] == "6700:")
            assert tree["packets"] > 100
            assert tree["overlimits"] == 0, "the tree inside waits for its own rate"
        agent.stop()
        assert whole(hosts) == before
    assert all(as_wanted[sharing](counts) for sharing, counts in got.items()), got


def test_the_last_of_a_band_and_those_of_the_last_band_live_in_their_floors(hosts: TwoHosts, agent: Agent) -> None:
    # A packet of 310 bytes has its turn each 2.5 s at 1 kbit/s.
    small = ("link", "set", hosts.interface, "mtu", "296", "gso_max_segs", "1")
    assert hosts.run(hosts.sender, "ip", *small).returncode == 0
    give_jobs(agent, *PORTS)
    agent.start(*EACH, nic="tls-one")
    wait_until(lambda: len(leaves(hosts)) == len(PORTS))
    starved = (7101, 7102, 7103)
    before = sent_bytes(hosts)
    begun = time.monotonic()

    def sent() -> dict[int, int]:
        after = sent_bytes(hosts)
        return {port: after[port] - before[port] for port in after}

    # Each leaf may first send a burst of 1514 bytes, one after the other; at 1 kbit/s a burst lasts for 12 s.
    with fan_out(hosts, 7100, *starved):
        wait_until(lambda: min(sent()[port] for port in starved) > 1514 + 3 * 310, seconds=90.0, every=0.5)
        got, seconds = sent(), time.monotonic() - begun
        shown = json.loads(tc(hosts, "-s", "-j", "qdisc", "show", "dev", hosts.interface))
        assert next(qdisc["backlog"] for qdisc in shown if qdisc["handle"] == "6701:") > 0, "a band's leaf is not idle"
    assert got[7100] * 8 / seconds > 0.7 * RATE_BPS
    for port in starved:
        assert got[port] < 0.1 * got[7100]
    agent.stop()


class Turn(NamedTuple):
    """The bytes that came from ports while their ranks stayed as they are."""

    ranks: dict[int, tuple[str, str]]
    got: dict[int, int]

    def is_in_order(self) -> bool:
        """Whether the first port had the link, which was full."""
        first, *others = sorted(self.got, key=self.ranks.__getitem__)
        is_full = 8 * sum(self.got.values()) / TURN_SECONDS > 0.7 * RATE_BPS
        return is_full and all(self.got[first] > 10 * self.got[other] for other in others)


def turn_of(hosts: TwoHosts, *ports: int) -> Turn:
    """Measure within one turn. Where jobs have moved meanwhile, another one is measured."""

    def within_one() -> Turn | None:
        before = ranks(hosts)
        got = measured(hosts, *ports, settle=0.7, seconds=TURN_SECONDS)
        return Turn(before, got) if ranks(hosts) == before else None

    return wait_until(within_one, 120.0, what="a turn in which nobody looks away")


def test_a_rotation_moves_jobs_to_other_places_and_drops_nothing(hosts: TwoHosts, agent: Agent) -> None:
    give_jobs(agent, *PORTS)
    # A slow machine needs seconds to start the programs of a measurement.
    agent.start(*EACH, "--rotate-seconds", "12")
    wait_until(lambda: len(leaves(hosts)) == len(PORTS))
    ports = (7100, 7101, 7107)
    for _ in range(2):
        with fan_out(hosts, *ports) as traffic:
            before, there = ranks(hosts), whole(hosts)[:2]
            wait_until(lambda before=before: ranks(hosts) != before, 60.0)
            time.sleep(0.5)
            traffic.bytes_since()
            assert whole(hosts)[:2] == there, "filters move, and no leaf"
            shown = json.loads(tc(hosts, "-s", "-j", "qdisc", "show", "dev", hosts.interface))
            assert {qdisc["handle"]: qdisc["drops"] for qdisc in shown if qdisc["drops"]} == {}
        # What a job has queued leaves by its old place, so the order holds for what it sends from now on.
        turn = first_that(Turn.is_in_order, lambda: turn_of(hosts, *ports))
        assert turn.is_in_order(), turn
    agent.stop()


PLAN = """
import sys
from controller.code_points import POOL_2
from host_reporter.nic.interface import Nic
nic = Nic(sys.argv[1], None)
nic.apply(5e6, POOL_2, 0.01, 0.1)
assert nic._look().root.major == 0x7472
nic.remove()
"""


@pytest.mark.parametrize("then", ["each", "shared", "one server", "plan"])
def test_what_a_killed_agent_has_left_is_gone_on_with_or_gone(hosts: TwoHosts, agent: Agent, then: str) -> None:
    before = whole(hosts)
    give_jobs(agent, *PORTS)
    agent.start(*EACH, nic="tls-one")
    wait_until(lambda: len(leaves(hosts)) == len(PORTS))
    there = whole(hosts)
    (guard,) = wait_until(agent.children)
    os.kill(guard, signal.SIGKILL)
    agent.process.kill()
    agent.process.wait()
    assert whole(hosts) == there
    if then == "plan":
        done = hosts.run(hosts.sender, sys.executable, "-c", PLAN, hosts.interface)
        assert done.returncode == 0, done.stderr
        assert whole(hosts) == before
        return
    if then == "one server":
        for port in PORTS[1:]:
            agent.end_job(f"j{port}")
    agent.log.unlink()
    agent.start("--nic-bands", "shared" if then == "shared" else "each", nic="tls-one")
    wait_until(lambda: agent.says(f"job j{PORTS[0]}: following"))
    if then == "each":
        wait_until(lambda: agent.says("orders this host's parameter servers"))
        wait_until(lambda: (leaves(hosts), whole(hosts)) == (BANDS, there))
    elif then == "shared":
        wait_until(lambda: sorted(leaves(hosts).values())[:3] == ["1000", "1001", "1100"])
        wait_until(lambda: "htb 67" not in " ".join(whole(hosts)[0]))
    else:
        wait_until(lambda: whole(hosts) == before)
    agent.stop()
    assert whole(hosts) == before


def test_in_the_agents_own_tree_it_is_a_guest(hosts: TwoHosts, agent: Agent) -> None:
    tree = "\n".join(htb_tree(hosts.interface, RATE_BPS, POOL_2, 0.01, 0.1)) + "\n"
    assert hosts.run(hosts.sender, "tc", "-batch", "-", text=tree).returncode == 0
    before = whole(hosts)
    give_jobs(agent, *PORTS)
    agent.start(*EACH, nic="tls-one")
    wait_until(lambda: len(leaves(hosts)) == len(PORTS))
    got = first_that(
        lambda got: got[7100] > 10 * got[7101], lambda: measured(hosts, 7100, 7101, settle=1.0, seconds=1.5)
    )
    assert got[7100] > 10 * got[7101]
    for port in PORTS[:4]:
        agent.end_job(f"j{port}")
    wait_until(lambda: sorted(leaves(hosts).values()) == ["1700", "1701", "1702", "1703"])
    agent.process.kill()
    wait_until(lambda: whole(hosts) == before)


def test_more_jobs_than_there_are_places_share_some(hosts: TwoHosts, agent: Agent) -> None:
    before = whole(hosts)
    give_jobs(agent, *range(7100, 7157))
    agent.start(*EACH, nic="tls-one")
    wait_until(lambda: len(leaves(hosts)) == 57)
    found = ranks(hosts)
    assert [found[port][1] for port in (7100, 7101, 7102, 7108)] == ["1000", "1001", "1020", "1080"]
    assert len(set(found.values())) == 57
    agent.stop()
    assert whole(hosts) == before
