"""Several interfaces of a host: each has its tree and rate, one that fails stands alone, bonds are followed."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from controller.code_points import CodePoints
from controller.wire import HostPlan
from host_reporter.nic.errors import NicError
from host_reporter.nic.interface import Nic
from host_reporter.nic.netdev import Netdev
from host_reporter.nic.trees import Ordered, Trees
from host_reporter.notices import Notices

ETH0, ETH1, ETH2 = (Netdev(index, f"eth{index}", 1) for index in range(3))


class FakeNic(Nic):
    """Notes the rate that it serves; None: there is no tree. ``refuses`` is why it serves none."""

    def __init__(self, name: str, refuses: str = "") -> None:
        super().__init__(name, None)
        self.rate_bps: float | None = None
        self.points: CodePoints | None = None
        self.refuses = refuses
        self.was: tuple[str, ...] = ()

    def apply(self, link_bps: float, points: CodePoints, class_floor: float, other_floor: float) -> tuple[str, ...]:
        if self.refuses:
            raise NicError(f"{self.interface}: {self.refuses}")
        self.rate_bps, self.points = link_bps, points
        return ()

    def changed(self) -> tuple[str, ...]:
        return self.was

    def put_back(self) -> None:
        self.was = ()

    def watch(self) -> None:
        """There is nothing to guard."""

    def remove(self) -> None:
        self.rate_bps = None

    def remove_left(self) -> bool:
        return False


class Host:
    def __init__(self, *ordered: Ordered, netdevs: tuple[Netdev, ...] = (ETH0, ETH1, ETH2)) -> None:
        self.netdevs = netdevs
        self.nics: dict[str, FakeNic] = {}
        self.refuses: dict[str, str] = {}
        self.trees = Trees(
            ordered,
            Notices(logging.getLogger("test")),
            read=lambda: {netdev.ifindex: netdev for netdev in self.netdevs},
            make=self._make,
        )

    def _make(self, name: str) -> FakeNic:
        self.nics[name] = FakeNic(name, self.refuses.get(name, ""))
        return self.nics[name]

    @property
    def rates(self) -> dict[str, float | None]:
        return {name: nic.rate_bps for name, nic in self.nics.items()}


def plan(**more: Any) -> HostPlan:
    values = {"host": "h1", "epoch": 1, "policy": "fifo", "mode": "marked", "class_dscp": (59, 51)}
    return HostPlan.model_validate(values | {"class_floor": 0.01, "other_floor": 0.1, "egress_bps": 3e9} | more)


RAILS = plan(interfaces=[{"name": "eth0", "egress_bps": 1e9}, {"name": "eth1", "egress_bps": 2e9}])


def test_each_interface_has_its_own_rate() -> None:
    host = Host(Ordered("eth0"), Ordered("eth1"))
    assert host.trees.apply(RAILS) and host.rates == {"eth0": 1e9, "eth1": 2e9}
    # A controller of an earlier version knows one interface of a host.
    assert host.trees.apply(plan()) and host.rates == {"eth0": 3e9, "eth1": 3e9}
    own = Host(Ordered("eth0", 5e9), Ordered("eth2", 4e9))
    assert own.trees.apply(RAILS) and own.rates == {"eth0": 5e9, "eth2": 4e9}
    assert own.trees.remove() and own.rates == {"eth0": None, "eth2": None}


def test_an_interface_serves_the_dscps_of_jobs_in_their_classes() -> None:
    host = Host(Ordered("eth0"))
    jobs = [{"job": "a", "dscp": 3, "service_class": 1}, {"job": "b", "dscp": 46, "service_class": 0}]
    assert host.trees.apply(plan(mode="dscp", jobs=jobs))
    assert host.nics["eth0"].points is not None
    assert host.nics["eth0"].points.served() == {3: 1, 46: 0, 63: 0}
    jobs[0]["service_class"] = 0
    assert host.trees.apply(plan(mode="dscp", jobs=jobs))
    assert host.nics["eth0"].points.served() == {3: 0, 46: 0, 63: 0}


def test_an_interface_that_the_settings_do_not_have_is_said_and_the_others_are_ordered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = Host(Ordered("eth2"), Ordered("eth1"))
    assert not host.trees.apply(RAILS) and host.rates == {"eth1": 2e9}
    (said,) = [record.getMessage() for record in caplog.records]
    assert "eth2 is none of this host's interfaces in the controller's settings, which are eth0, eth1: " in said


def test_one_that_refuses_its_tree_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    host = Host(Ordered("eth0"), Ordered("eth1"))
    host.refuses["eth0"] = "tc is not installed"
    for _ in range(3):
        assert not host.trees.apply(RAILS)
    assert host.rates == {"eth0": None, "eth1": 2e9}
    assert [record.getMessage() for record in caplog.records] == [
        "this host's interface does not order its traffic: eth0: tc is not installed"
    ]


def test_a_bond_is_followed_to_the_ports_that_it_has(caplog: pytest.LogCaptureFixture) -> None:
    bond = Netdev(9, "bond0", 1, kind="bond", bond_mode=4)
    ports = [netdev._replace(master=9) for netdev in (ETH0, ETH1)]
    host = Host(Ordered("bond0"), netdevs=(*ports, ETH2, bond))
    assert host.trees.apply(plan(egress_bps=2e9)) and host.rates == {"eth0": 1e9, "eth1": 1e9}
    host.netdevs = (ports[0], ETH1, ETH2, bond)
    host.trees.reconcile()
    assert host.rates == {"eth0": 2e9, "eth1": None}, "a port that has left is as it was"
    host.netdevs = (*(port._replace(master=None) for port in ports), bond)
    host.trees.reconcile()
    assert "bond0 is a bond without ports" in caplog.text and host.rates["eth0"] is None
    host.netdevs = (*ports, bond)
    host.trees.reconcile()
    assert host.rates == {"eth0": 1e9, "eth1": 1e9}


def test_two_vlans_of_one_interface_share_its_tree() -> None:
    vlans = [Netdev(9 + n, f"eth0.{n}", 1, kind="vlan", lower=0) for n in range(2)]
    host = Host(Ordered("eth0.0", 1e9), Ordered("eth0.1", 2e9), netdevs=(ETH0, *vlans))
    assert host.trees.apply(plan()) and host.rates == {"eth0": 2e9}


def test_what_others_change_at_one_interface_is_said_with_its_name(caplog: pytest.LogCaptureFixture) -> None:
    host = Host(Ordered("eth0"), Ordered("eth1"))
    host.trees.apply(RAILS)
    host.nics["eth1"].was = ("class 7472:10 was gone",)
    host.trees.reconcile()
    (said,) = [record.getMessage() for record in caplog.records]
    assert "the traffic control of eth1: class 7472:10 was gone" in said and host.nics["eth1"].was == ()


def test_interfaces_that_cannot_be_read_are_said(caplog: pytest.LogCaptureFixture) -> None:
    host = Host(Ordered("eth0"))
    assert host.trees.apply(plan())

    def fails() -> dict[int, Netdev]:
        raise OSError("the interfaces change too quickly")

    host.trees._read = fails
    host.trees.reconcile()
    assert not host.trees.apply(plan()) and host.rates == {"eth0": 3e9}, "what is there stays"
    assert "this host's interfaces cannot be listed: the interfaces change too quickly" in caplog.text
