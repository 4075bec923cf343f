"""Other networks: a switch that ignores set_queue, one that is served by filters, and a fabric with loops."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from controller.code_points import PRESETS
from evaluation.bench.support.waiting import wait_until
from simulator.workloads import curves
from tests.support.lab.network_helpers import CLASSES, PERIOD_SECONDS, gate_is_open
from tests.support.lab.prevails import prevails
from topologies import networks, openvswitch
from topologies.emulation import Emulation, emulate
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab import queue_proof
from topologies.lab.arm import run_arm
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.lab import network_of
from topologies.lab.queue_proof import Stream, job_spec, measure
from topologies.lab.results import PolicyChoice

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

UPLINK_BPS = 20e6
MODEL_BYTES = 200_000
ITERATIONS = 20
CLASS_BYTES = re.compile(r'trainyard_switch_class_bytes_total\{dpid="(\w+)",service_class="(\w+)"\} (\S+)')
PROBE_SECONDS = 2
TAKE_OVER_PROBES = 3
"""A switch that is told to fail standalone does so after so many of its probes."""


def start_controller(emulation: Emulation, policy: str = "fifo") -> ControllerProcess:
    emulation.connect_controller()
    controller = ControllerProcess(
        emulation, emulation.folder / "controller", policy, classes=CLASSES, period_seconds=PERIOD_SECONDS
    )
    controller.start()
    return controller


@pytest.mark.usefixtures("alone")
def test_a_switch_that_ignores_set_queue_is_reported_and_filters_make_it_obey() -> None:
    # A slow link: in a box, a switch in user space is no match for a fast one.
    with emulate(networks.Testbed(servers=3, link_bps=5e6, datapath="user"), datapath="user") as emulation:
        controller = start_controller(emulation)

        def complaint() -> str:
            status = controller.try_status()
            return "; ".join(s.reason or "" for s in status.switches) if status is not None else ""

        wait_until(lambda: "set_queue" in complaint(), 40)
        status = controller.status()
        assert not any(switch.ready for switch in status.switches)
        controller.stop()

        emulation.use_own_queues(CLASSES)
        controller = start_controller(emulation)
        controller.wait_ready()
        assert queue_proof.prove(emulation, controller).ratio >= 20
        controller.stop()


@pytest.mark.usefixtures("alone")
def test_hosts_and_switches_serve_the_dscps_of_the_preset() -> None:
    classes = PRESETS["class-selectors"].classes
    with emulate(networks.Testbed(servers=3, dscp="class-selectors")) as emulation:
        marked = [Stream("h1", "h2", 5201, classes[0]), Stream("h1", "h3", 5202, classes[3])]
        controller = start_controller(emulation)
        controller.wait_ready()
        assert queue_proof.prove(emulation, controller).ratio >= 20
        assert prevails(emulation, marked, seconds=5), "at the NIC, which no agent has changed"
        controller.stop()


@pytest.mark.usefixtures("alone")
def test_hosts_have_linux_default_tcp_whatever_the_machine_has() -> None:
    machine = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    before = machine.read_text()
    machine.write_text("reno")
    try:
        # Here offload is off, which had other settings once.
        with emulate(networks.Testbed(servers=2, link_bps=5e6, datapath="user"), datapath="user") as emulation:
            for host in emulation.hosts:
                assert emulation.run(host, ["cat", str(machine)]).strip() == "cubic"
                assert emulation.run(host, ["cat", f"{machine.parent}/tcp_slow_start_after_idle"]).strip() == "0"
            assert machine.read_text().strip() == "reno", "the machine's own setting is left alone"
    finally:
        machine.write_text(before)


@pytest.fixture(scope="module")
def leaf_spine(stage: Stage) -> Iterator[Emulation]:
    """A leaf-spine with loops, as the lab makes it of an experiment."""
    stage.clear()
    with emulate(network_of(across_the_leaves(), "kernel")) as emulation:
        emulation.connect_controller()
        yield emulation


def across_the_leaves() -> Experiment:
    """Two jobs from leaf to leaf, one over IPv6. What goes to h4 crosses one spine, and what comes back the other."""
    curve = next(curve.name for curve in curves.index() if curve.iterations >= ITERATIONS)
    common = {
        "model": "short", "model_bytes": MODEL_BYTES, "compute_seconds": 0.05, "iterations": ITERATIONS, "curve": curve,
    }  # fmt: skip
    return Experiment(
        name="across",
        hosts=4,
        topology="leaf_spine",
        uplink_bps=UPLINK_BPS,
        addresses="both",
        period_seconds=0.5,
        limit_seconds=60.0,
        jobs=(
            JobPlan(id="ps", arrival=0.0, architecture="ps", hosts=("h4", "h1"), port=5000, **common),
            JobPlan(id="ring", arrival=0.5, architecture="ring", hosts=("h2", "h4"), port=5001, **common),
        ),
    )


def test_an_arm_on_a_leaf_spine_trains_all_its_jobs_and_every_switch_serves_their_classes(
    leaf_spine: Emulation, tmp_path: Path
) -> None:
    # The first of this network's tests: its controller makes the queues, whose counters begin with it.
    result = run_arm(leaf_spine, across_the_leaves(), PolicyChoice("fifo"), results=tmp_path / "arm")
    for job in result.jobs.values():
        assert (job.censored, len(job.history)) == (False, ITERATIONS)
    told = (tmp_path / "arm" / "controller" / "metrics.txt").read_text()
    sent = {(dpid, name): float(count) for dpid, name, count in CLASS_BYTES.findall(told)}
    one_way = MODEL_BYTES * ITERATIONS  # of each job; a spine has that of either way
    for switch in range(1, 5):
        first, second = (sent[f"{switch:016x}", service_class] for service_class in ("0", "1"))
        # Until its rules are there a job's bytes are other traffic, and the second has class 0 once it is alone.
        assert first > 0.5 * one_way, (switch, sent)
        assert second > 0.15 * one_way, (switch, sent)


@pytest.fixture(scope="module")
def fabric(leaf_spine: Emulation) -> Iterator[tuple[Emulation, ControllerProcess]]:
    """It with a controller, its switches set as the operator's guide says for ``forwarding: paths``."""
    controller = start_controller(leaf_spine)
    for bridge in leaf_spine.bridges:
        # A looped fabric that fails standalone would flood.
        openvswitch.vsctl(
            *("set-fail-mode", bridge, "secure"),
            *("--", "set", "controller", bridge, f"inactivity_probe={PROBE_SECONDS * 1000}"),
        )
    controller.wait_ready()
    yield leaf_spine, controller
    if controller.runs:
        controller.stop()


def test_a_leaf_spine_forwards_without_a_storm_and_keeps_the_order(
    fabric: tuple[Emulation, ControllerProcess],
) -> None:
    emulation, controller = fabric
    all_reach_each_other(emulation)
    assert packets_in(emulation, 2) < 400, "the idle fabric is not idle"

    for job, port, sender, arrival in (("first", 5601, "h1", 1.0), ("second", 5602, "h2", 2.0)):
        controller.call("PUT", f"/v1/jobs/{job}", job_spec("h3", port, sender) | {"arrival": arrival})
    wanted = {"first": 0, "second": 1}
    wait_until(lambda: queue_proof.classes(controller, list(wanted)) == wanted)
    first, second = measure(emulation, [Stream("h1", "h3", 5601), Stream("h2", "h3", 5602)], seconds=5)
    if first + second < 1.1 * UPLINK_BPS:
        # Without an order both have the same. On a quiet machine the ratio is 80 : 1. With four busy programs beside
        # the box it was between 10 and 100 : 1 in 30 measurements, as often with the looks at the rules as without
        # them, and without a retransmission: while the box has no processor, the first sender's queue runs empty.
        assert first > 5 * second > 0
    else:
        # Over different spines: the receiver's link is the bottleneck then, and carries both.
        assert first + second < 2 * UPLINK_BPS


def test_a_leaf_spine_goes_on_without_its_controller_and_without_a_storm(
    fabric: tuple[Emulation, ControllerProcess],
) -> None:
    emulation, controller = fabric
    controller.kill()
    began = time.monotonic()
    wait_until(lambda: not any(gate_is_open(bridge) for bridge in emulation.bridges), 30)
    time.sleep(max(0.0, began + (TAKE_OVER_PROBES + 1) * PROBE_SECONDS - time.monotonic()))
    for host in emulation.hosts:
        # As after a pause: they ask each other for their addresses again, and that is broadcast.
        emulation.run(host, ["ip", "neigh", "flush", "dev", f"{host}-eth0"])
    all_reach_each_other(emulation, families=1)
    assert packets_in(emulation, 2) < 400, "the idle fabric is not idle"


def all_reach_each_other(emulation: Emulation, families: int = 2) -> None:
    """Ping all hosts by their addresses of so many families, IPv4 first."""
    for src in emulation.hosts:
        for dst in emulation.hosts:
            for address in emulation.plugs(dst)[0].addresses[:families] if src != dst else ():
                emulation.run(src, ["ping", "-n", "-c", "2", "-i", "0.2", "-W", "2", address])


def packets_in(emulation: Emulation, seconds: float) -> int:
    before = packets(emulation)
    time.sleep(seconds)
    return packets(emulation) - before


def packets(emulation: Emulation) -> int:
    """Packets that all interfaces outside the hosts have sent and received so far, without the management's."""
    lines = emulation.run(None, ["cat", "/proc/net/dev"]).splitlines()[2:]
    counts = [line.split() for line in lines if line.strip().startswith("s")]
    return sum(int(count[2]) + int(count[10]) for count in counts)
