"""What a host says of its interface, by the kernel of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluation.bench.support.hosts.own_namespace import own_namespace
from host_reporter.enrolment import interface
from host_reporter.enrolment.interface import (
    InterfaceError,
    InterfaceFacts,
    lasting,
    look,
    of_interface,
    own_address,
)

ADDRESSES = [("lo", "127.0.0.1"), ("eth0", "10.0.0.7"), ("eth0", "10.0.1.7"), ("eth0", "10.0.0.7"), ("ib0", "10.9.0.7")]


def test_the_address_towards_the_controller_comes_first() -> None:
    assert of_interface(ADDRESSES, "eth0", "10.0.1.7") == ("10.0.1.7", "10.0.0.7")
    assert of_interface(ADDRESSES, "ib0", "10.0.1.7") == ("10.9.0.7",)
    assert of_interface([("eth0", "fd00::7"), *ADDRESSES], "eth0", None)[-1] == "fd00::7"
    assert of_interface(ADDRESSES, "eth9", None) == of_interface(ADDRESSES, "lo", None) == ()


def test_lasting_global_addresses_are_told_and_no_others() -> None:
    table = """\
fd000000000000000000000000000007 02 40 00 80     eth0
20010db8000000000000000000000007 02 40 00 00     eth0
20010db80000000000000000deadbeef 02 40 00 01     eth0
20010db80000000000000000deadbee0 02 40 00 21     eth0
20010db8000000000000000000000008 02 40 00 c0     eth0
20010db8000000000000000000000009 02 40 00 a0     eth0
fe80000000000000000000fffe000007 02 40 20 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
fd010000000000000000000000000007 03 40 00 82     eth1
"""
    told = [("eth0", "fd00::7"), ("eth0", "2001:db8::7"), ("eth1", "fd01::7")]
    assert list(lasting(table)) == told, "none that is temporary, tentative, deprecated, of a link or the loopback"


def test_the_kernel_tells_the_interfaces_of_addresses() -> None:
    assert own_address("127.0.0.1", 8080) == "127.0.0.1"
    # The loopback is found by its address, and refused for it.
    with pytest.raises(InterfaceError, match="interface lo has no address that others reach"):
        look(None, "127.0.0.1")
    with pytest.raises(InterfaceError, match="give --interface"):
        look(None, "203.0.113.9")


def test_a_connection_from_a_temporary_address_is_that_of_an_interface_whose_lasting_ones_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "if_inet6"
    table.write_text(
        "20010db80000000000000000deadbeef 02 40 00 01     eth7\n20010db8000000000000000000000007 02 40 00 00     eth7\n"
    )
    monkeypatch.setattr(interface, "IPV6_ADDRESSES", table)
    found = look(None, "2001:db8::dead:beef")
    assert (found.name, found.addresses) == ("eth7", ("2001:db8::7",))


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_an_interface_without_mac_and_speed_tells_neither() -> None:
    with own_namespace("10.0.0.7"):
        facts = look(None, own_address("10.0.0.7", 8080))
    assert facts == InterfaceFacts("lo", ("10.0.0.7",), None, None)


@pytest.mark.parametrize(
    ("speed", "rate"), [("25000\n", 25e9), ("-1\n", None), ("0\n", None), ("what\n", None), (None, None)]
)
def test_the_rate_is_what_the_kernel_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, speed: str | None, rate: float | None
) -> None:
    monkeypatch.setattr(interface, "SYSFS", tmp_path)
    (tmp_path / "lo").mkdir()
    (tmp_path / "lo/address").write_text("0c:42:a1:00:00:07\n")
    if speed is not None:
        (tmp_path / "lo/speed").write_text(speed)
    monkeypatch.setattr(interface, "_addresses", lambda: [("lo", "10.0.0.7")])
    facts = look("lo", None)
    assert (facts.mac, facts.rate_bps) == ("0c:42:a1:00:00:07", rate)
