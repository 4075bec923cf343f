"""Switches and ports in ``GET /metrics``: their series are few, whoever connects."""

from __future__ import annotations

from collections.abc import Iterator

import eventlet
import pytest

from controller import steps
from controller.api.exposition import network
from controller.api.exposition.metrics import read_metrics
from controller.dataplane.values import PortProof, SwitchStatus
from tests.support.controller.api.samples import Samples
from tests.support.controller.api.served import Served, served

HOSTS = [
    {"name": "h1", "address": "10.0.0.1", "switch": "0x1", "port": 1},
    {"name": "h2", "address": "10.0.0.2", "switch": "0x1", "port": 2, "ingress_bps": 8e9},
]
LINKS = [{"a": "0x1", "a_port": 9, "b": "0x2", "b_port": 8, "rate_bps": 4e9}]
ONE, TWO = f"{1:016x}", f"{2:016x}"


@pytest.fixture
def api() -> Iterator[Served]:
    with served(hosts=HOSTS, links=LINKS) as there:
        yield there


def read(api: Served) -> Samples:
    return Samples(api.call("GET", "/metrics").text)


def status(dpid: int, *, ready: bool = True, problem: str | None = None) -> SwitchStatus:
    proofs = (PortProof(1, "eth1", {}), PortProof(2, "eth2", {}, problem))
    return SwitchStatus(dpid, connected=True, ready=ready, reason=None, rules=7, bundles=True, ports=proofs, repairs=3)


def test_a_switch_of_the_settings_has_series_while_it_is_away(api: Served) -> None:
    api.yard.network.status = lambda: (status(1, problem="its queues are not ours"),)
    found = read(api)
    assert found.by("dpid", "trainyard_switch_connected") == {ONE: 1, TWO: 0}
    assert found.by("dpid", "trainyard_switch_ready") == {ONE: 1, TWO: 0}
    assert found.by("dpid", "trainyard_switch_unproven_ports") == {ONE: 1}
    assert found.by("dpid", "trainyard_switch_rules") == {ONE: 7}
    assert found.by("dpid", "trainyard_switch_repairs_total") == {ONE: 3}


def test_a_switch_that_is_only_observed_is_not_said_to_be_not_ready() -> None:
    with served(hosts=HOSTS, enforce=["host"]) as api:
        api.yard.network.status = lambda: (status(1, ready=False),)
        found = read(api)
        assert found.by("dpid", "trainyard_switch_connected") == {ONE: 1}
        assert found.of("trainyard_switch_ready") == []
        assert found.value("trainyard_switches_ready") == 0


def test_strangers_that_connect_take_no_place_from_the_switches_of_the_settings(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "MOST_SWITCHES", 3)
    api.yard.network.status = lambda: tuple(status(dpid, ready=False) for dpid in (5, 6, 7, 8))
    found = read(api)
    assert found.by("dpid", "trainyard_switch_connected") == {ONE: 0, TWO: 0, f"{5:016x}": 1}
    assert set(found.by("dpid", "trainyard_switch_rules")) == {f"{5:016x}"}


def test_the_bytes_of_a_port_name_its_host_and_have_its_speed_beside_them(api: Served) -> None:
    api.yard.network.class_bytes = lambda: {(1, 0): 5, (1, None): 7}
    api.yard.network.port_bytes = lambda anew=True: {
        (1, 2): {0: 5, None: 6},
        (1, 9): {None: 1},
        (1, 77): {None: int(anew)},
    }
    found = read(api)
    assert found.by("service_class", "trainyard_switch_class_bytes_total") == {"0": 5, "other": 7}
    name = "trainyard_port_class_bytes_total"
    assert found.value(name, dpid=ONE, port="2", host="h2", service_class="0") == 5
    assert found.value(name, dpid=ONE, port="9", host="", service_class="other") == 1
    assert found.value(name, port="77", host="") == 0, "switches are asked once"
    assert found.by("port", "trainyard_port_speed_bytes") == {"2": 1e9, "9": 5e8}
    assert found.value("trainyard_ports_left_out") == 0


def test_a_large_network_has_as_many_ports_as_prometheus_bears(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "MOST_PORTS", 4)
    api.yard.network.port_bytes = lambda anew=True: {(1, port): {0: port} for port in range(10)}
    found = read(api)
    assert found.by("port", "trainyard_port_class_bytes_total") == {str(port): port for port in range(4)}
    assert found.value("trainyard_ports_left_out") == 6


def test_others_go_on_while_the_text_of_many_ports_is_made(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "TURN_SECONDS", 0.0)
    api.yard.network.port_bytes = lambda anew=True: {(1, port): {0: port} for port in range(500)}
    turns = 0

    def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            eventlet.sleep(0)

    thread = eventlet.spawn(others)
    read_metrics(api.services, None)
    thread.kill()
    assert turns > 500


def test_a_switch_whose_counters_cannot_be_read_takes_nothing_else_away(api: Served) -> None:
    def fails() -> dict[tuple[int, int | None], int]:
        raise RuntimeError("no answer")

    api.yard.network.class_bytes = fails
    found = read(api)
    assert found.of("trainyard_switch_class_bytes_total") == []
    assert found.value("trainyard_switches_ready") == 1
