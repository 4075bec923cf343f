"""A host enrols at a controller with a real switch: its announcement comes in at its port, and nobody else's counts."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from controller.wire.announcement import Announcement, frame_of
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.controller_program import Controller
from tests.support.lab.switch_fixtures import DPID, HOSTS, LINK_BPS, Bridge
from tests.support.rounds import first_that

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

NEWCOMER = 3
OTHER = 2
SPARE = HOSTS + 1
"""A host that the switch gets during a test."""
FLOOD = 20_000
_SEND = """
import socket, sys
sending = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
sending.bind(("eth0", 0))
for _ in range(int(sys.argv[2])):
    sending.send(bytes.fromhex(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def controller(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """It knows h1 and h2, and lets others enrol."""
    stage.clear()
    hosts = [
        {"name": f"h{n}", "address": f"10.0.0.{n}", "ingress_bps": LINK_BPS, "egress_bps": LINK_BPS,
         "switch": DPID, "port": n}
        for n in (1, OTHER)
    ]  # fmt: skip
    made = Controller(tmp_path_factory.mktemp("enrolment"), hosts=hosts, enrolment={})
    yield made
    if made.process.poll() is None:
        made.stop()


@pytest.fixture(scope="module")
def bridge(controller: Controller) -> Iterator[Bridge]:
    made = Bridge(controller.openflow_port)
    wait_until(controller.ready, 30, what="readiness")
    yield made
    made.close()


@pytest.fixture
def newcomer(controller: Controller, bridge: Bridge) -> Iterator[dict[str, Any]]:
    """The answer to h3, which has asked, and waits."""
    mac = bridge.inside(NEWCOMER, "cat", "/sys/class/net/eth0/address").strip()
    request = {
        "addresses": [f"10.0.0.{NEWCOMER}"],
        "interface": "eth0",
        "mac": mac,
        "egress_bps": LINK_BPS,
        "ingress_bps": LINK_BPS,
        "token_sha256": "3" * 64,
    }
    answer = controller.call("PUT", "/v1/hosts/h3", {"request": request})
    assert answer.status_code == 201, answer.text
    yield answer.json()
    assert controller.call("DELETE", "/v1/hosts/h3?force=true").status_code == 204


def send(bridge: Bridge, n: int, frame: bytes, times: int = 1) -> None:
    """Send a frame out of a host's interface."""
    bridge.inside(n, sys.executable, "-c", _SEND, frame.hex(), str(times))


def announce(bridge: Bridge, n: int, told: dict[str, Any]) -> None:
    send(bridge, n, frame_of(Announcement(told["mac"], told["announcement"]), "h3"))


def host(controller: Controller) -> dict[str, Any]:
    return next(each for each in controller.get("/v1/hosts")["hosts"] if each["name"] == "h3")


def test_a_host_is_found_where_it_announces_itself_and_its_jobs_get_rules_there(
    controller: Controller, bridge: Bridge, newcomer: dict[str, Any]
) -> None:
    def is_found() -> bool:
        announce(bridge, NEWCOMER, newcomer)
        return host(controller)["port"] is not None

    wait_until(is_found, 20, every=0.5, what="the announcement")
    assert (host(controller)["switch"], host(controller)["port"]) == (f"{DPID:016x}", NEWCOMER)
    assert host(controller)["found_by"] == "announcement"
    before = bridge.flows()
    assert controller.call("PUT", "/v1/hosts/h3", {"decision": {"state": "approved"}}).ok
    assert bridge.pings(1, NEWCOMER)
    tasks = [{"role": "ps", "host": "h3", "port": 7300}, {"role": "worker", "host": "h1"}]
    assert controller.call("PUT", "/v1/jobs/new", {"tasks": tasks}).status_code == 201

    def rules() -> list[str]:
        return [rule for rule in bridge.flows() if "tp_src=7300" in rule or "tp_dst=7300" in rule]

    wait_until(rules, 5, what="the job's rules")
    assert any(f"in_port={NEWCOMER}" in rule or f'in_port="{bridge.port(NEWCOMER)}"' in rule for rule in rules())
    assert controller.call("DELETE", "/v1/jobs/new").status_code == 204
    wait_until(lambda: bridge.flows() == before, 5, what="that the host has cost no rule")


def test_the_port_of_another_is_not_taken(controller: Controller, bridge: Bridge, newcomer: dict[str, Any]) -> None:
    def is_noticed() -> bool:
        announce(bridge, OTHER, newcomer)
        return bool(host(controller)["problems"])

    wait_until(is_noticed, 20, every=0.5, what="the announcement")
    assert "where it cannot be: port 2" in host(controller)["problems"][0]
    assert host(controller)["port"] is None


def test_a_flood_of_such_frames_holds_up_nobody(
    controller: Controller, bridge: Bridge, newcomer: dict[str, Any]
) -> None:
    noise = frame_of(Announcement(newcomer["mac"], "0" * 32), "h3")

    def answered_after() -> float:
        send(bridge, OTHER, noise, FLOOD)
        began = time.monotonic()
        assert controller.ready()
        return time.monotonic() - began

    assert first_that(lambda seconds: seconds < 1.0, answered_after) < 1.0
    assert bridge.pings(1, OTHER)

    def is_found() -> bool:
        announce(bridge, NEWCOMER, newcomer)
        return host(controller)["port"] is not None

    wait_until(is_found, 20, every=0.5, what="the announcement, after the flood")
    assert "Traceback" not in (controller.folder / "controller.log").read_text()


def test_a_host_with_another_cable_is_followed(
    controller: Controller, bridge: Bridge, newcomer: dict[str, Any]
) -> None:
    """Its frame comes in at a port that the switch has got meanwhile, which tells the controller to listen."""

    def is_at(port: int) -> bool:
        announce(bridge, port, newcomer)
        return bool(host(controller)["port"] == port)

    def is_noticed() -> bool:
        announce(bridge, OTHER, newcomer)
        return bool(host(controller)["problems"])

    wait_until(lambda: is_at(NEWCOMER), 20, every=0.5, what="the announcement")
    assert controller.call("PUT", "/v1/hosts/h3", {"decision": {"state": "approved"}}).ok
    bridge.add_host(SPARE)
    try:
        wait_until(lambda: is_at(SPARE), 20, every=0.5, what="the announcement at the other port")
        assert (host(controller)["found_by"], host(controller)["problems"]) == ("announcement", [])
    finally:
        bridge.remove_host(SPARE)
    wait_until(lambda: is_at(NEWCOMER), 20, every=0.5, what="the announcement at the first port")
    # The port of a host of the settings is never taken.
    wait_until(is_noticed, 20, every=0.5, what="the problem")
    assert host(controller)["port"] == NEWCOMER
