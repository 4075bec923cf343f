"""What a host says of its interface, by the kernel of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluation.bench.support.hosts.own_namespace import own_namespace
from host_reporter.enrolment import interface
from host_reporter.enrolment.interface import InterfaceError, InterfaceFacts, look, of_interface, own_address

ADDRESSES = [("lo", "127.0.0.1"), ("eth0", "10.0.0.7"), ("eth0", "10.0.1.7"), ("eth0", "10.0.0.7"), ("ib0", "10.9.0.7")]


def test_the_address_towards_the_controller_comes_first() -> None:
    assert of_interface(ADDRESSES, "eth0", "10.0.1.7") == ("10.0.1.7", "10.0.0.7")
    assert of_interface(ADDRESSES, "ib0", "10.0.1.7") == ("10.9.0.7",)
    for name in ("eth9", "lo"):
        with pytest.raises(InterfaceError, match=f"interface {name} has no IPv4 address that others reach"):
            of_interface(ADDRESSES, name, None)


def test_the_kernel_tells_the_interfaces_of_addresses() -> None:
    assert own_address("127.0.0.1", 8080) == "127.0.0.1"
    # The loopback is found by its address, and refused for it.
    with pytest.raises(InterfaceError, match="interface lo has no IPv4 address that others reach"):
        look(None, "127.0.0.1")
    with pytest.raises(InterfaceError, match="give --interface"):
        look(None, "203.0.113.9")


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
