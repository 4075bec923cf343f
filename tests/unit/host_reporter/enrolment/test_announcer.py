"""By which cable an announcement leaves: its frame has no tag, and a bond of several cables is at no single port."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

from controller.wire.announcement import NEAREST_BRIDGE, Announcement, parse
from evaluation.bench.support.hosts.own_namespace import own_namespace
from host_reporter.enrolment import announcer
from host_reporter.enrolment.announcer import announce, cables_of
from host_reporter.nic.netdev import Netdev, Network

ETH0, ETH1 = Netdev(2, "eth0", 1, master=5), Netdev(3, "eth1", 1, master=5)
BOND = Netdev(5, "bond0", 1, kind="bond", bond_mode=4)
TAGGED = Netdev(6, "bond0.7", 1, kind="vlan", lower=5)
ANNOUNCEMENT = Announcement("02:00:00:00:00:07", "0123456789abcdef" * 2)
_ETH_LLDP = 0x88CC


def cables(name: str, *netdevs: Netdev) -> tuple[str, ...]:
    return cables_of({netdev.ifindex: netdev for netdev in netdevs}, name)


def test_a_vlan_is_announced_below_and_a_bond_at_its_port() -> None:
    assert cables("eth0", ETH0._replace(master=None)) == ("eth0",)
    assert cables("bond0.7", ETH0, BOND, TAGGED) == cables("bond0", ETH0, BOND) == ("eth0",)
    assert cables("bond0.7", ETH0, ETH1, BOND, TAGGED) == ("eth0", "eth1")


def test_where_nobody_knows_what_carries_its_packets_it_sends_them_itself() -> None:
    assert cables("team0", Netdev(2, "team0", 1, kind="team")) == ("team0",)
    assert cables("eth9") == ("eth9",)


def test_a_bond_of_several_cables_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network({netdev.ifindex: netdev for netdev in (ETH0, ETH1, BOND)}, {})
    monkeypatch.setattr(announcer.netdev_list, "read", lambda: network)
    said = announce("bond0", "h7", ANNOUNCEMENT)
    assert said == "bond0 has several cables (eth0, eth1), so it is at no single port of a switch"


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_what_is_announced_comes_out_of_the_cable() -> None:
    with own_namespace():
        subprocess.run("ip link add c0 type veth peer name c1 && ip link set c0 up && ip link set c1 up",
                       shell=True, check=True)  # fmt: skip
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_LLDP)) as switch:
            switch.bind(("c1", 0))
            switch.settimeout(10)
            assert announce("c0", "h7", ANNOUNCEMENT) is None
            frame = switch.recv(2048)
        assert (frame[:6], parse(frame)) == (NEAREST_BRIDGE, ANNOUNCEMENT)
        assert announce("c9", "h7", ANNOUNCEMENT) == "c9: No such device"
