"""One network at a time, shared by all tests that want the same one; a controller that survives its tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.network_helpers import CLASSES, LINK_BPS, PERIOD_SECONDS
from tests.support.lab.switch_fixtures import DPID, Bridge, Driver
from topologies import networks
from topologies.box.datapath import kernel_problem
from topologies.emulation import Emulation, emulate
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.queue_proof import job_spec


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First all that share the testbed, then what needs the machine for itself."""
    items.sort(key=lambda item: "testbed" not in getattr(item, "fixturenames", ()))


@dataclass
class Stage:
    """What runs now; ``clear`` takes it down."""

    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    emulation: Emulation | None = None
    controller: ControllerProcess | None = None

    def clear(self) -> None:
        self.emulation = self.controller = None
        self.stack.close()


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    problem = kernel_problem()
    if problem is not None:
        pytest.fail(f"{problem}; run these tests as: scripts/test lab")
    held = Stage()
    yield held
    held.clear()


@pytest.fixture
def alone(stage: Stage) -> None:
    """Nothing of ours runs: the test starts its own network."""
    stage.clear()


@pytest.fixture
def testbed(stage: Stage) -> Emulation:
    """13 servers on one switch, as the measured workloads have them."""
    if stage.emulation is None:
        stage.emulation = stage.stack.enter_context(emulate(networks.Testbed(servers=13, link_bps=LINK_BPS)))
        stage.emulation.connect_controller()
    return stage.emulation


@pytest.fixture
def controller(testbed: Emulation, stage: Stage) -> Iterator[ControllerProcess]:
    """A controller with fifo, ready and without jobs; it may be killed and is there again for the next test."""
    if stage.controller is None:
        stage.controller = ControllerProcess(
            testbed,
            testbed.folder / "controller",
            "fifo",
            classes=CLASSES,
            period_seconds=PERIOD_SECONDS,
            assign="top",  # every change of the order moves all behind it: what rules have to bear at most
        )
        stage.controller.start()
        stage.stack.callback(stage.controller.stop)
    elif not stage.controller.runs:
        stage.controller.start()
    stage.controller.wait_ready()
    yield stage.controller
    if stage.controller is not None and stage.controller.runs:
        for job in stage.controller.call("GET", "/v1/jobs")["jobs"]:
            stage.controller.call("DELETE", f"/v1/jobs/{job['id']}")


@pytest.fixture
def register(controller: ControllerProcess) -> Callable[..., None]:
    """``register(job, receiver, port, *senders, arrival=)``: put it, and wait for its place in the plan."""

    def put(job: str, receiver: str, port: int, *senders: str, arrival: float) -> None:
        controller.call("PUT", f"/v1/jobs/{job}", job_spec(receiver, port, *senders) | {"arrival": arrival})
        wait_until(lambda: job in controller.call("GET", "/v1/plan")["classes"], what=f"the planning of {job}")

    return put


@pytest.fixture(scope="module")
def openflow_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def running(stage: Stage, openflow_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    stage.clear()
    made = Driver(openflow_port, tmp_path_factory.mktemp("driver"))
    yield made
    if made.runs:
        made.stop()


@pytest.fixture(scope="module")
def bridge(running: Driver) -> Iterator[Bridge]:
    # After its controller: a switch that finds none at first waits longer and longer before it tries again.
    made = Bridge(running.openflow_port)
    yield made
    made.close()


@pytest.fixture
def driver(bridge: Bridge, running: Driver) -> Driver:
    """The driver, its switch ready and without jobs."""
    assert bridge.dpid == DPID
    if not running.runs:
        running.start()
    running.wait_ready()
    running.do("apply", flows={}, classes={})
    return running
