"""Servers with several interfaces, addresses of both families and MAC addresses in the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.config.config import Config, ConfigError, load_config
from controller.enrolment.claims import Claim
from controller.enrolment.listed import Listed
from controller.enrolment.record import Site
from controller.model import Host
from controller.process.startup import dataplane_settings
from controller.reload.difference import changes

TWO_RAILS = """
hosts:
  - name: gpu1
    interfaces:
      - {name: eth0, address: 10.0.0.1, addresses: ["FD00::0:1"],
         egress_bps: 2e9, switch: 1, port: 1, mac: "02:00:00:00:00:01"}
      - {name: eth1, addresses: ["fd01::1", 10.1.0.1], switch: 2, port: 1}
  - {name: store, address: "fd00::9"}
"""  # fmt: skip


def load(folder: Path, text: str) -> Config:
    path = folder / "conf.yaml"
    path.write_text(text)
    return load_config(path)


def test_a_server_is_as_many_endpoints_as_it_has_interfaces(tmp_path: Path) -> None:
    hosts = load(tmp_path, TWO_RAILS).host_map()
    assert hosts == {
        "gpu1/eth0": Host(
            "gpu1/eth0", 1e9, 2e9, "10.0.0.1", 1, 1, ("fd00::1",), mac="02:00:00:00:00:01", interface="eth0"
        ),
        "gpu1/eth1": Host("gpu1/eth1", 1e9, 1e9, "10.1.0.1", 2, 1, ("fd01::1",), interface="eth1"),
        "store": Host("store", more_addresses=("fd00::9",)),
    }
    assert hosts["gpu1/eth1"].addresses == ("10.1.0.1", "fd01::1") and hosts["gpu1/eth1"].server == "gpu1"
    assert hosts["store"].address is None


def test_one_interface_with_a_name_is_the_server(tmp_path: Path) -> None:
    text = "hosts: [{name: a, interfaces: [{name: eth0, address: 10.0.0.1}]}]\n"
    assert load(tmp_path, text).host_map() == {"a": Host("a", address="10.0.0.1", interface="eth0")}


def test_the_other_parts_know_each_interface(tmp_path: Path) -> None:
    config = load(tmp_path, TWO_RAILS + "untrusted_hosts: [gpu1]\n")
    settings = dataplane_settings(config, config.host_map())
    assert settings.untrusted == {(1, 1), (2, 1)} and settings.rates_bps == {(1, 1): 1e9, (2, 1): 1e9}
    held = Listed.of(config).holders
    assert held[Claim("address", "fd01::1")] == "gpu1/eth1" and held[Claim("mac", "02:00:00:00:00:01")] == "gpu1/eth0"
    assert held[Claim("port", Site(2, 1))] == "gpu1/eth1" and held[Claim("address", "fd00::9")] == "store"


def test_a_changed_interface_is_named(tmp_path: Path) -> None:
    before = load(tmp_path, TWO_RAILS)
    (change,) = changes(before, load(tmp_path, TWO_RAILS.replace("switch: 2, port: 1", "switch: 2, port: 7")))
    assert str(change) == "hosts.gpu1.interfaces.eth1.port: 1 -> 7"


ETH0, ETH1 = "{name: eth0, address: 10.0.0.1, switch: 1, port: 1}", "{name: eth1, address: 10.1.0.1}"


def two(first: str = ETH0, second: str = ETH1, rest: str = "") -> str:
    return f"hosts: [{{name: a, interfaces: [{first}, {second}]{rest}}}, {{name: b, address: 10.0.0.2}}]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (two(rest=", address: 10.0.0.9"), ":1: hosts[0]: a has interfaces, so address must be in each of these"),
        (two(rest=", switch: 1, port: 3"), "a has interfaces, so switch, port must be in each of these"),
        (two(second="{name: eth1}"), ":1: hosts[0].interfaces[1]: interface eth1 has no address"),
        (two(second="{address: 10.1.0.1}"), ":1: hosts[0].interfaces[1].name: is missing"),
        (two(second="{name: a/b, address: 10.1.0.1}"), ":1: hosts[0].interfaces[1].name: "),
        (two(second="{name: eth0, address: 10.1.0.1}"), "a's eth0 and a's eth0 have the same interface name"),
        (two(second="{name: eth1, address: 10.0.0.2}"), "b and a/eth1 have the same address"),
        (two(second="{name: eth1, address: 10.1.0.1, switch: 1, port: 1}"), "a/eth1 and a/eth0 have the same switch"),
        (two() + "forwarding: paths\n", "a/eth1 has no switch and port; forwarding: paths"),
        (two() + "untrusted_hosts: [a]\n", ":2: untrusted_hosts: where a/eth1 is plugged in is not known"),
        (two() + "untrusted_hosts: [a/eth0]\n", ":2: untrusted_hosts"),
        ("hosts: [{name: a, interfaces: []}]\n", "a has no address; set address, addresses or interfaces"),
        ("hosts: [{name: a, addresses: []}]\n", "a has no address"),
        ("hosts: [{name: a, address: 'fd00::g'}]\n", "'fd00::g' is no IPv6 address"),
        ("hosts: [{name: a, address: '::ffff:10.0.0.1'}]\n", "is an IPv4 address; write 10.0.0.1"),
        ("hosts: [{name: a, address: 'ff02::1'}]\n", "ff02::1 is the address of no single server"),
        ("hosts: [{name: a, address: '::1'}]\n", "::1 is the address of no single server"),
        ("hosts: [{name: a, addresses: ['fd00::1', 'fd00:0::1']}]\n", "a and a have the same address"),
        ("hosts: [{name: a, address: 10.0.0.1, mac: 01:00:00:00:00:01}]\n", ":1: hosts[0].mac: "),
    ],
)
def test_what_is_wrong_is_named_with_its_field(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert expected in str(caught.value)
