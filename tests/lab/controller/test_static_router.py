"""What ``trainyard switch-config --for linux`` prints, run on a real router with ports of 10 Mbit/s, both families."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from controller.code_points import POOL_2
from tests.support.controller.cli.printed import printed
from tests.support.host.routed_hosts import ENTRANCE, EXIT, RECEIVER, RECEIVER_IPV6, RoutedHosts, routed_hosts
from tests.support.host.two_hosts import Rates
from tests.support.rounds import first_that

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

RATE_BPS = 10e6
CLASS_FLOOR = 0.03
START, STOP = 2.0, 6.0
"""The window that is measured, in seconds; before it the first burst drains."""

SETTINGS = f"""
floors: {{job_class: {CLASS_FLOOR}, other: 0.1}}
hosts:
  - {{name: sender, address: 10.77.1.2, ingress_bps: {RATE_BPS:.0f}, switch: "0x1", port: 1}}
  - {{name: receiver, address: 10.77.2.2, ingress_bps: {RATE_BPS:.0f}, switch: "0x1", port: 2}}
"""
PORTS = ("--port", f"1={ENTRANCE}", "--port", f"2={EXIT}")
FAMILIES = pytest.mark.parametrize("address", [RECEIVER, RECEIVER_IPV6], ids=["ipv4", "ipv6"])


def script(folder: Path, settings: str) -> str:
    file = folder / "conf.yaml"
    file.write_text(settings)
    return printed("switch-config", "--for", "linux", "--settings", str(file), *PORTS)


@pytest.fixture(scope="module")
def hosts(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoutedHosts]:
    stage.clear()
    with routed_hosts() as made:
        said = made.sh(script(tmp_path_factory.mktemp("settings"), SETTINGS))
        assert "quantum" not in said, "the kernel warns of a quantum that does not fit"
        yield made


def rates(hosts: RoutedHosts, flows: dict[int, int], address: str) -> Rates:
    """Returns what arrives of each flow, and what each leaf of the exit sends."""
    count = partial(hosts.class_bytes, EXIT, hosts.router)
    return hosts.rates(flows, start=START, stop=STOP, count=count, address=address)


@FAMILIES
def test_a_higher_class_goes_first_and_the_lower_one_keeps_its_floor(hosts: RoutedHosts, address: str) -> None:
    def is_in_order(found: Rates) -> bool:
        first, lower = found.received[7001], found.received[7002] + found.received[7003]
        return first >= 20 * lower and 0.7 * RATE_BPS < first + lower < 1.01 * RATE_BPS

    flows = {7001: POOL_2.classes[0], 7002: POOL_2.classes[3], 7003: POOL_2.classes[3]}
    found = first_that(is_in_order, lambda: rates(hosts, flows, address))
    assert is_in_order(found), found
    assert found.sent["13"] >= 0.5 * CLASS_FLOOR * RATE_BPS, "the floor of the lower class"


@FAMILIES
def test_other_traffic_keeps_its_floor(hosts: RoutedHosts, address: str) -> None:
    flows = {7010: POOL_2.classes[0], 7011: 0, 7012: 0, 7013: 46}
    found = first_that(lambda found: found.sent["1f"] < 0.15 * RATE_BPS, lambda: rates(hosts, flows, address))
    assert found.sent["1f"] >= 0.08 * RATE_BPS, found
    assert found.sent["1f"] < 0.15 * RATE_BPS, "a floor, not a share"


def packets(hosts: RoutedHosts) -> dict[str, int]:
    """How many packets each leaf of the exit has sent."""
    shown = hosts.sh(f"tc -s class show dev {EXIT}")
    found = re.findall(r"class htb 7475:(\w+) .*?Sent \d+ bytes (\d+) pkt", shown, re.S)
    return {leaf: int(count) for leaf, count in found if leaf != "1"}


def sent(hosts: RoutedHosts, address: str, packets_by_traffic_class: dict[int, int]) -> dict[str, int]:
    """Send so many packets of each traffic class. Returns how many left by each leaf, in tens: a few are others'."""
    assert hosts.run(hosts.sender, "ping", "-c", "1", "-W", "5", address).returncode == 0, "neighbours are resolved"
    before = packets(hosts)
    flows = [f"{traffic_class}:{count}" for traffic_class, count in packets_by_traffic_class.items()]
    done = hosts.run(
        hosts.sender, sys.executable, "-S", "-m", "tests.support.host.send_datagrams", address, "1", *flows
    )
    assert done.returncode == 0, done.stderr
    after = packets(hosts)
    return {leaf: tens for leaf in after if (tens := (after[leaf] - before[leaf]) // 10)}


@FAMILIES
def test_each_dscp_leaves_by_its_queue_whatever_its_ecn_bits_are(hosts: RoutedHosts, address: str) -> None:
    flows = {dscp << 2 | ecn: 10 * (k + 1) for dscp, k in POOL_2.served().items() for ecn in (0, 2)}
    expected = {f"{0x10 + k:x}": 2 * (k + 1) for k in range(7)}
    expected["10"] += 2  # of acknowledgements
    assert sent(hosts, address, flows | {0: 10, 46 << 2: 20, 58 << 2: 30}) == expected | {"1f": 6}


def test_a_port_that_is_not_believed_is_served_as_other_traffic_until_it_is_believed_again(tmp_path: Path) -> None:
    with routed_hosts() as made:
        for settings, leaf in ((SETTINGS + "untrusted_hosts: [sender]\n", "1f"), (SETTINGS, "10")):
            made.sh(script(tmp_path, settings))
            for address in (RECEIVER, RECEIVER_IPV6):
                assert sent(made, address, {POOL_2.classes[0] << 2: 20}) == {leaf: 2}
