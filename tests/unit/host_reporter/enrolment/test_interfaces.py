"""Which interfaces a host enrols with, by the kernel, in a network namespace with several."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.bench.support.hosts.own_namespace import own_namespace
from host_reporter.enrolment import interface, interfaces
from host_reporter.enrolment.interface import InterfaceError, InterfaceFacts, own_address
from host_reporter.enrolment.interfaces import look_at_all
from host_reporter.nic import netdev_list
from host_reporter.nic.netdev import Netdev, Network

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
MACS = {"r0": "02:00:00:00:00:07", "r1": "02:00:00:00:01:07", "slow": "02:00:00:00:02:07"}
SPEEDS = {"r0": 100_000, "r1": 100_000, "slow": 1000}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def add(name: str, mac: str) -> None:
    """Add an interface whose cable leads to another one."""
    ip("link", "add", name, "address", mac, "type", "veth", "peer", "name", f"to-{name}")
    for end in (name, f"to-{name}"):
        ip("link", "set", end, "up")


@pytest.fixture
def rails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interfaces with addresses of both families. Virtual ones tell no rate, so that is written beside."""
    monkeypatch.setattr(interface, "SYSFS", tmp_path)
    with own_namespace():
        for number, name in enumerate(MACS):
            add(name, MACS[name])
            ip("address", "add", f"10.{number}.0.7/24", "dev", name)
            ip("-6", "address", "add", f"fd00:{number + 1}::7/64", "dev", name, "nodad")
            (tmp_path / name).mkdir()
            (tmp_path / name / "address").write_text(f"{MACS[name]}\n")
            (tmp_path / name / "speed").write_text(f"{SPEEDS[name]}\n")
        yield


def facts(number: int, name: str) -> InterfaceFacts:
    return InterfaceFacts(name, (f"10.{number}.0.7", f"fd00:{number + 1}::7"), MACS[name], SPEEDS[name] * 1e6)


def test_those_of_the_options_are_told_in_their_order(rails: None) -> None:
    assert look_at_all(["r1", "r0"], None, is_whole=True) == (facts(1, "r1"), facts(0, "r0"))
    ip("-4", "address", "flush", "dev", "r1")
    told = look_at_all(["r0", "r1"], None, is_whole=True)
    assert [each.addresses for each in told] == [("10.0.0.7", "fd00:1::7"), ("fd00:2::7",)]
    told = look_at_all(["r1", "r0"], None, is_whole=True)
    assert [each.addresses for each in told] == [("fd00:2::7",), ("10.0.0.7", "fd00:1::7")]


def test_one_without_address_is_waited_for_and_can_be_announced(rails: None) -> None:
    ip("address", "flush", "dev", "r1")
    for names in (["r0", "r1"], ["r1", "r0"]):
        with pytest.raises(InterfaceError, match="interface r1 has no address that others reach"):
            look_at_all(names, None, is_whole=True)
        told = look_at_all(names, None, is_whole=False)
        assert {each.name: each.addresses for each in told} == {"r0": ("10.0.0.7", "fd00:1::7"), "r1": ()}
        assert [each.mac for each in told] == [MACS[name] for name in names]


def test_the_interface_that_leads_to_a_controller_over_ipv6_is_the_first(rails: None) -> None:
    assert own_address("fd00:2::1", 8080) == "fd00:2::7"
    (first,) = look_at_all([], "fd00:2::7", is_whole=True)
    assert first == facts(1, "r1")
    ip("-4", "address", "flush", "dev", "r1")
    assert look_at_all([], "fd00:2::7", is_whole=True)[0].addresses == ("fd00:2::7",)


def test_what_has_the_mac_address_of_another_interface_such_as_a_vlan_is_left_out(rails: None, tmp_path: Path) -> None:
    add("r0.9", MACS["r0"])
    ip("address", "add", "10.9.0.7/24", "dev", "r0.9")
    (tmp_path / "r0.9").mkdir()
    (tmp_path / "r0.9/address").write_text(MACS["r0"])
    assert look_at_all(["r0", "r0.9"], None, is_whole=True) == (facts(0, "r0"),)


def test_without_options_the_physical_ones_that_are_as_fast_are_told_beside_the_first(
    rails: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look_at_all([], "10.0.0.7", is_whole=True) == (facts(0, "r0"),), "virtual ones are none"

    def as_physical() -> Network:
        there = netdev_list.read()
        return there._replace(netdevs={index: _physical(netdev) for index, netdev in there.netdevs.items()})

    monkeypatch.setattr(interfaces, "netdev_list", type("Physical", (), {"read": staticmethod(as_physical)}))
    assert look_at_all([], "10.0.0.7", is_whole=True) == (facts(0, "r0"), facts(1, "r1"))
    assert look_at_all([], "10.2.0.7", is_whole=True) == (facts(2, "slow"), facts(0, "r0"), facts(1, "r1"))


def _physical(netdev: Netdev) -> Netdev:
    return netdev._replace(kind="") if netdev.name in MACS else netdev
