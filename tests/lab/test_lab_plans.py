"""What a plan does to the switch: a flow moves, an unchanged plan sends nothing, restarts keep what was."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.lab.network_helpers import LINK_BPS, PERIOD_SECONDS, flows, gate_is_open, poll
from topologies.controller_process import ControllerProcess
from topologies.emulation import Emulation
from topologies.openvswitch import RUN_FOLDER, running
from topologies.queue_proof import Stream, classes, measure

Register = Callable[..., None]


def bytes_of(controller: ControllerProcess) -> dict[str, int]:
    return controller.status().bytes_by_class["0000000000000001"]


def test_a_new_plan_moves_a_living_connection(
    testbed: Emulation, controller: ControllerProcess, register: Register
) -> None:
    register("moved", "h1", 5301, "h2", arrival=1000.0)
    with ThreadPoolExecutor() as pool:
        running_stream = pool.submit(measure, testbed, [Stream("h2", "h1", 5301)], seconds=8)
        start = bytes_of(controller)
        assert poll(lambda: bytes_of(controller)["0"] > start["0"] + 3e6)
        register("earlier", "h3", 5302, "h4", arrival=500.0)
        assert poll(lambda: classes(controller, ["moved"]) == {"moved": 1})
        before = bytes_of(controller)
        assert poll(lambda: bytes_of(controller)["1"] > before["1"] + 6e6)
        after = bytes_of(controller)
        (received,) = running_stream.result()
    assert after["0"] - before["0"] < 0.1 * (after["1"] - before["1"])
    assert received > 0.8 * LINK_BPS


def settle(controller: ControllerProcess) -> None:
    """Wait until a plan of the period has come after all that was asked for."""
    planned = controller.status().plan_causes.get("period", 0)
    assert poll(lambda: controller.status().plan_causes.get("period", 0) > planned + 1)


def test_an_unchanged_plan_sends_nothing_but_the_gates_renewal(
    controller: ControllerProcess, register: Register
) -> None:
    register("steady", "h1", 5301, "h2", arrival=1000.0)
    settle(controller)
    before = controller.status()
    rules = flows("s1")
    assert poll(lambda: controller.status().gate_renewals >= before.gate_renewals + 3, 10 * PERIOD_SECONDS)
    after = controller.status()
    assert after.plan_causes["period"] >= before.plan_causes["period"] + 2
    assert after.flow_mods == before.flow_mods
    assert flows("s1") == rules


def test_a_restart_of_the_controller_changes_no_rule(controller: ControllerProcess, register: Register) -> None:
    for i in range(3):
        register(f"kept-{i}", "h1", 5310 + i, f"h{i + 2}", arrival=1000.0 + i)
    settle(controller)
    rules, before = flows("s1"), controller.call("GET", "/v1/plan")["classes"]
    controller.kill()
    controller.start()
    controller.wait_ready()
    assert flows("s1") == rules
    assert controller.call("GET", "/v1/plan")["classes"] == before
    assert controller.status().flow_mods == 0


def test_a_restart_of_the_switch_gets_all_rules_back(
    testbed: Emulation, controller: ControllerProcess, register: Register
) -> None:
    register("kept", "h1", 5301, "h2", arrival=1000.0)
    settle(controller)
    rules = flows("s1")
    restart_switch()
    assert poll(lambda: any(switch.ready for switch in controller.status().switches), 30)
    assert poll(lambda: flows("s1") == rules, 30)
    (received,) = measure(testbed, [Stream("h2", "h1", 5301)], seconds=2)
    assert received > 0.8 * LINK_BPS


def restart_switch() -> None:
    pid = int((RUN_FOLDER / "ovs-vswitchd.pid").read_text())
    command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    os.kill(pid, signal.SIGTERM)
    assert poll(lambda: not Path(f"/proc/{pid}").exists())
    subprocess.run(command, check=True)
    assert poll(running)


def test_without_a_controller_the_network_goes_on_without_priorities(
    testbed: Emulation, controller: ControllerProcess, register: Register
) -> None:
    register("first", "h1", 5301, "h2", arrival=1000.0)
    register("second", "h1", 5302, "h3", arrival=1001.0)
    streams = [Stream("h2", "h1", 5301), Stream("h3", "h1", 5302)]
    high, low = measure(testbed, streams, seconds=3)
    assert high > 20 * low
    controller.kill()
    began = time.monotonic()
    assert poll(lambda: not gate_is_open("s1"), 30)
    assert time.monotonic() - began < 5 * PERIOD_SECONDS + 2
    before = queue_bytes("s1", 1)
    shares = measure(testbed, streams, seconds=4)
    after = queue_bytes("s1", 1)
    assert sum(shares) > 0.8 * LINK_BPS
    # All in one queue, whatever TCP makes of it there: the jobs' own queues stay as they are.
    assert after[0] - before[0] > 4 * 0.8 * LINK_BPS / 8
    assert {queue: after[queue] - before[queue] for queue in (1, 2)} == {1: 0, 2: 0}


def queue_bytes(bridge: str, port: int) -> dict[int, int]:
    """Bytes that each queue of a port has sent, as the switch counts them."""
    command = ["ovs-ofctl", "-O", "OpenFlow13", "queue-stats", bridge, str(port)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {int(queue): int(sent) for queue, sent in re.findall(r"queue (\d+): bytes=(\d+)", text)}
