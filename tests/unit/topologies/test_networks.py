"""The networks as Mininet's command makes them: executed, not imported, with arguments that are text."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.code_points import CLASS_SELECTORS, DCB, POOL_2
from topologies import management, networks
from topologies.experiments.experiment import Experiment
from topologies.lab.lab import network_of

FILE = Path(networks.__file__)


@pytest.fixture(scope="module")
def topos() -> dict[str, Callable]:
    space: dict = {}
    exec(compile(FILE.read_text(), str(FILE), "exec"), space, space)
    return space["topos"]


def test_the_testbed_is_a_star(topos) -> None:
    net = topos["testbed"]("13")
    assert (len(net.hosts()), net.switches(), len(net.links())) == (13, ["s1"], 13)
    assert net.nodeInfo("h13")["ip"] == "10.0.0.13/24"
    assert net.nodeInfo("s1")["rates_bps"] == dict.fromkeys(range(1, 14), 100e6)
    assert {net.nodeInfo(host)["segments"] for host in net.hosts()} == {8}
    assert net.nodeInfo("s1")["packets"] == 48
    assert {net.nodeInfo(host)["points"] for host in net.hosts()} == {POOL_2}


@pytest.mark.parametrize("name", ["testbed", "leaf_spine"])
def test_the_hosts_serve_the_dscps_of_the_preset(topos, name: str) -> None:
    net = topos[name](queues="3", dscp="class-selectors")
    assert net.dscp == "class-selectors"
    assert {net.nodeInfo(host)["points"] for host in net.hosts()} == {CLASS_SELECTORS.first(2)}


def test_a_leaf_spine_has_every_leaf_at_every_spine(topos) -> None:
    net = topos["leaf_spine"]("4", "2", "3", link_bps="50000000", uplink_bps="2e7")
    assert (len(net.hosts()), len(net.switches()), len(net.links())) == (12, 6, 12 + 8)
    assert net.nodeInfo("s1")["rates_bps"] == {1: 50e6, 2: 50e6, 3: 50e6, 4: 20e6, 5: 20e6}
    assert net.nodeInfo("s5")["rates_bps"] == dict.fromkeys(range(1, 5), 20e6)
    same = topos["leaf_spine"](link_bps="50000000")
    assert set(same.nodeInfo("s1")["rates_bps"].values()) == {50e6}


def test_each_rail_has_a_switch_of_its_own_and_subnets_of_its_own(topos) -> None:
    net = topos["testbed"]("3", rails="2", addresses="both")
    assert (net.switches(), len(net.links())) == (["s1", "s2"], 6)
    assert net.nodeInfo("s2")["rates_bps"] == dict.fromkeys((1, 2, 3), 100e6)
    assert net.nodeInfo("h3")["addresses"] == (("10.0.0.3", "fd00::3"), ("10.1.0.3", "fd00:0:0:1::3"))
    assert net.linkInfo("h3", "s2") | {"addr1": ""} == net.linkInfo("h3", "s1") | {
        "addr1": "",
        "port1": 1,
        "node2": "s2",
    }
    assert len({link["addr1"] for _a, _b, link in net.links(withInfo=True)}) == 6


@pytest.mark.parametrize(
    ("addresses", "first", "known"),
    [
        ("ipv4", ("10.0.0.1",), "10.0.0.1/24"),
        ("ipv6", ("fd00::1",), None),
        ("both", ("10.0.0.1", "fd00::1"), "10.0.0.1/24"),
    ],
)
@pytest.mark.parametrize("name", ["testbed", "leaf_spine"])
def test_hosts_have_addresses_of_the_families(
    topos, name: str, addresses: str, first: tuple, known: str | None
) -> None:
    net = topos[name](addresses=addresses)
    assert net.nodeInfo("h1")["addresses"] == (first,)
    assert net.nodeInfo("h1")["ip"] == known, "what Mininet's own commands use"


def test_the_largest_network_has_addresses_for_all(topos) -> None:
    net = topos["testbed"](str(management.LARGEST))
    assert net.nodeInfo(f"h{management.LARGEST}")["ip"] == f"10.0.0.{management.LARGEST}/24"
    assert len({link["addr1"] for _a, _b, link in net.links(withInfo=True)}) == management.LARGEST


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("testbed", ["300"], {}, "testbed: servers: 300 is not a whole number from 1 to 253"),
        ("testbed", ["0"], {}, "servers: 0 is"),
        ("testbed", ["-3"], {}, "servers: -3 is"),
        ("testbed", ["abc"], {}, "servers: abc is"),
        ("testbed", ["3", "nan"], {}, "link_bps: nan is not a rate"),
        ("testbed", ["3"], {"link_bps": "0"}, "link_bps: 0 is not a rate"),
        ("testbed", ["3"], {"queues": "1"}, "queues: 1 is not a whole number from 2 to 8"),
        ("testbed", ["3"], {"queues": "9"}, "queues: 9"),
        ("testbed", ["3"], {"dscp": "cs"}, "dscp: there is no preset cs; there are: pool-2, class-selectors, dcb"),
        ("testbed", ["3"], {"rails": "0"}, "rails: 0 is not a whole number from 1 to 8"),
        ("testbed", ["3"], {"rails": "9"}, "rails: 9"),
        ("testbed", ["3"], {"segments": "1"}, "segments: 1 is not a whole number from 2 to 42"),
        ("leaf_spine", [], {"segments": "43"}, "segments: 43"),
        ("testbed", ["3"], {"port_packets": "-1"}, "port_packets: -1 is not a whole number from 0 to 65536"),
        ("testbed", ["3"], {"rto_min_seconds": "0.1"}, "rto_min_seconds: 0.1 is not from 0.2 to 60.0 s"),
        ("leaf_spine", [], {"rto_min_seconds": "long"}, "rto_min_seconds: long is not from 0.2 to 60.0 s"),
        ("testbed", ["3"], {"addresses": "ipv5"}, "addresses: there is no ipv5; there are: ipv4, ipv6, both"),
        ("leaf_spine", [], {"addresses": "v6"}, "addresses: there is no v6"),
        ("testbed", ["3"], {"colour": "red"}, "colour"),
        ("leaf_spine", ["100", "2", "4"], {}, "servers, of all leaves together: 400"),
        ("leaf_spine", ["0"], {}, "leaves: 0"),
        ("leaf_spine", ["2", "0"], {}, "spines: 0"),
        ("leaf_spine", ["2", "2", "0"], {}, "servers_per_leaf: 0"),
        ("leaf_spine", [], {"uplink_bps": "fast"}, "uplink_bps: fast"),
    ],
)
def test_a_network_that_cannot_be_is_one_line(topos, name: str, arguments: list, options: dict, message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        topos[name](*arguments, **options)
    assert message in str(ended.value.code)
    assert "\n" not in str(ended.value.code)


def test_from_python_it_is_an_error_of_its_own() -> None:
    with pytest.raises(networks.TopologyError, match="servers: 254"):
        networks.Testbed(servers=254)


def experiment(**values: object) -> Experiment:
    job = {
        "id": "a", "arrival": 0.0, "architecture": "ps", "hosts": ["h1", "h2"], "port": 5000, "model": "m",
        "model_bytes": 1000, "compute_seconds": 0.1, "iterations": 10, "curve": "digits-linear-40",
    }  # fmt: skip
    created = Experiment.model_validate({"name": "x", "jobs": [job]} | values)
    assert Experiment.model_validate_json(created.model_dump_json()) == created, "the trainers read something else"
    return created


def test_the_lab_runs_the_network_that_an_experiment_names() -> None:
    plain = network_of(experiment(hosts=3, link_bps=25e6, queues=5), "kernel")
    assert (plain.hosts(), plain.switches()) == (["h1", "h2", "h3"], ["s1"])
    assert plain.nodeInfo("s1")["rates_bps"] == dict.fromkeys((1, 2, 3), 25e6)
    assert plain.nodeInfo("h1")["points"] == POOL_2.first(4)

    fabric = experiment(hosts=6, topology="leaf_spine", leaves=3, spines=1, uplink_bps=2e7, queues=5, dscp="dcb")
    net = network_of(fabric, "user")
    assert (len(net.hosts()), net.switches()) == (6, ["s1", "s2", "s3", "s4"])
    assert net.nodeInfo("s3")["rates_bps"] == {1: 100e6, 2: 100e6, 3: 20e6}
    assert net.nodeInfo("h6")["points"] == DCB.first(4)
    assert {net.nodeInfo(switch)["datapath"] for switch in net.switches()} == {"user"}

    railed = network_of(experiment(hosts=2, rails=2, addresses="ipv6"), "kernel")
    assert (railed.switches(), len(railed.links())) == (["s1", "s2"], 4)
    assert railed.nodeInfo("h2")["addresses"] == (("fd00::2",), ("fd00:0:0:1::2",))

    for small in (experiment(hosts=3, segments=2), experiment(hosts=4, topology="leaf_spine", segments=2)):
        net = network_of(small, "kernel")
        assert {net.nodeInfo(host)["segments"] for host in net.hosts()} == {2}
        assert {net.nodeInfo(switch)["packets"] for switch in net.switches()} == {192}, "as many bytes"
    deep = network_of(experiment(hosts=3, segments=2, port_packets=4096), "kernel")
    assert deep.nodeInfo("s1")["packets"] == 4096
    for patient in (
        experiment(hosts=3, rto_min_seconds=4.4),
        experiment(hosts=4, topology="leaf_spine", rto_min_seconds=4.4),
    ):
        net = network_of(patient, "kernel")
        assert {net.nodeInfo(host)["rto_min_seconds"] for host in net.hosts()} == {4.4}

    least = network_of(experiment(hosts=4, topology="leaf_spine", link_bps=25e6), "kernel")
    assert (len(least.switches()), len(least.links())) == (4, 4 + 4)
    assert least.nodeInfo("s1")["rates_bps"] == dict.fromkeys((1, 2, 3, 4), 25e6)


def test_the_file_needs_nothing_but_the_systems_python(tmp_path: Path) -> None:
    run = f"f={str(FILE)!r}; c={{}}\nexec(compile(open(f).read(), f, 'exec'), c, c)\n"
    code = run + "print(len(c['topos']['testbed']('3').hosts()))"
    env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    completed = subprocess.run(
        ["/usr/bin/python3", "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert completed.stdout.strip() == "3", completed.stderr
