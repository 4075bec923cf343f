"""What ``trainyard switch-config --for ovs`` prints, run on a real bridge without a controller: queues and flows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from controller.code_points import POOL_2
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.cli.printed import printed
from tests.support.host.two_hosts import Rates, TwoHosts
from tests.support.lab.switch_fixtures import HOSTS, LINK_BPS, Bridge, sh
from tests.support.rounds import first_that

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

NAME = "tystatic"
DPID = 0x57A7
START, STOP = 1.5, 5.5
CLASS_FLOOR = 0.01


def run_script(bridge: Bridge, folder: Path, settings: str = "") -> None:
    """Print the configuration, and run it by ``sh`` as an operator would."""
    place = f'ingress_bps: {LINK_BPS:.0f}, switch: "{DPID:#x}"'
    hosts = "".join(f"  - {{name: h{n}, address: 10.0.0.{n}, {place}, port: {n}}}\n" for n in range(1, HOSTS + 1))
    file = folder / "conf.yaml"
    file.write_text(f"hosts:\n{hosts}{settings}")
    names = [argument for n in range(1, HOSTS + 1) for argument in ("--port", f"{n}={bridge.port(n)}")]
    script = printed("switch-config", "--for", "ovs", "--settings", str(file), *names)
    done = subprocess.run(
        ["sh", "-c", script],
        env=os.environ | {"BRIDGE": bridge.name},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def rows(table: str) -> list[str]:
    return sh("ovs-vsctl", "--bare", "--columns=_uuid", "find", table, f"external_ids:trainyard_static={NAME}").split()


@pytest.fixture(scope="module")
def bridge(stage: Stage) -> Iterator[Bridge]:
    stage.clear()
    made = Bridge(free_port(), name=NAME, dpid=DPID)
    try:
        # No controller answers there, and the bridge is to have none.
        sh("ovs-vsctl", "del-controller", NAME)
        for n in range(1, HOSTS + 1):
            made.inside(n, "ip", "address", "add", f"fd00::{n}/64", "dev", "eth0", "nodad")
        yield made
    finally:
        made.close()
        for table in ("qos", "queue"):
            if left := rows(table):
                sh("ovs-vsctl", "destroy", table, *left)


def sent(bridge: Bridge, address: str, packets_by_traffic_class: dict[int, int]) -> dict[int, int]:
    """Send so many packets of 1,000 bytes of each traffic class to host 2. Returns the tens that left by each queue."""
    bridge.inside(1, "ping", "-c", "1", "-W", "5", address)
    before = bridge.queue_bytes(2)
    flows = [f"{traffic_class}:{count}" for traffic_class, count in packets_by_traffic_class.items()]
    bridge.inside(1, sys.executable, "-S", "-m", "tests.support.host.send_datagrams", address, "1000", *flows)

    def left() -> dict[int, int]:
        after = bridge.queue_bytes(2)
        return {queue: tens for queue in range(8) if (tens := (after[queue] - before[queue]) // 10_000)}

    # The last packets wait in their queue after the sender has ended.
    wanted = sum(packets_by_traffic_class.values()) // 10
    wait_until(lambda: sum(left().values()) >= wanted, what="that all packets left")
    return left()


def test_each_dscp_leaves_by_its_queue_and_a_port_that_is_not_believed_by_queue_0(
    bridge: Bridge, tmp_path: Path
) -> None:
    run_script(bridge, tmp_path)
    flows = {dscp << 2: 10 * (k + 1) for dscp, k in POOL_2.served().items()}
    for address in ("10.0.0.2", "fd00::2"):
        expected = {k + 1: k + 1 for k in range(7)} | {0: 1}
        expected[1] += 1  # of acknowledgements
        assert sent(bridge, address, flows | {46 << 2: 10}) == expected
    run_script(bridge, tmp_path, "untrusted_hosts: [h1]\n")
    for address in ("10.0.0.2", "fd00::2"):
        assert sent(bridge, address, {POOL_2.classes[0] << 2: 10}) == {0: 1}


def test_a_second_run_leaves_the_queues_of_one(bridge: Bridge, tmp_path: Path) -> None:
    for _ in range(2):
        run_script(bridge, tmp_path)
        assert (len(rows("qos")), len(rows("queue"))) == (HOSTS, 8 * HOSTS)


def test_a_higher_class_goes_first_and_the_lower_one_keeps_its_floor(bridge: Bridge, tmp_path: Path) -> None:
    run_script(bridge, tmp_path)
    hosts = TwoHosts(f"{NAME}h1", f"{NAME}h2", "eth0")
    flows = {7001: POOL_2.classes[0], 7002: POOL_2.classes[3], 7003: POOL_2.classes[3]}

    def rates() -> Rates:
        count = partial(bridge.queue_bytes, 2)
        return hosts.rates(flows, start=START, stop=STOP, count=count, address="10.0.0.2")

    def is_in_order(found: Rates) -> bool:
        return found.received[7001] >= 20 * (found.received[7002] + found.received[7003])

    found = first_that(is_in_order, rates)
    assert is_in_order(found), found
    # Queue 0 is of other traffic.
    assert found.sent[4] >= 0.5 * CLASS_FLOOR * LINK_BPS, "the floor of the lower class"
