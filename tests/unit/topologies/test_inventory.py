"""What the settings of the lab's controller say of hosts: of one interface in short, of several in a list."""

from __future__ import annotations

import pytest

from controller.config.config import Config
from tests.support.lab.unstarted_network import emulation
from topologies.emulation import Plug, inventory
from topologies.experiments.addressing import Families


def test_a_host_with_one_interface_is_told_in_short() -> None:
    network = emulation(1, "both")
    assert network.address("h2") == "10.0.0.2"
    assert emulation(1, "ipv6").address("h2") == "fd00::2"
    assert inventory(network)[1] == {
        "name": "h2", "address": "10.0.0.2", "addresses": ["fd00::2"], "ingress_bps": 25e6, "egress_bps": 25e6,
        "switch": 1, "port": 2,
    }  # fmt: skip


def test_a_host_with_several_interfaces_has_each_with_its_own_switch() -> None:
    network = emulation(2, "both")
    assert network.plugs("h1") == (
        Plug("h1", "h1-eth0", ("10.0.0.1", "fd00::1"), 1, 1, 25e6),
        Plug("h1", "h1-eth1", ("10.1.0.1", "fd00:0:0:1::1"), 2, 1, 25e6),
    )
    assert [plug.host for plug in network.plugs()] == ["h1", "h1", "h2", "h2"]
    first, second = inventory(network)
    assert (first["name"], set(second)) == ("h1", {"name", "interfaces"})


@pytest.mark.parametrize("addresses", ["ipv4", "ipv6", "both"])
@pytest.mark.parametrize("rails", [1, 2, 8])
def test_the_controller_takes_the_inventory_as_its_setting(rails: int, addresses: Families) -> None:
    network = emulation(rails, addresses)
    hosts = Config.model_validate({"hosts": inventory(network)}).host_map()
    found = {
        (host.server, host.interface, host.switch, host.switch_port, frozenset(host.addresses), host.egress_bps)
        for host in hosts.values()
    }
    assert found == {
        (plug.host, plug.interface if rails > 1 else None, plug.switch, plug.port, frozenset(plug.addresses), 25e6)
        for plug in network.plugs()
    }
