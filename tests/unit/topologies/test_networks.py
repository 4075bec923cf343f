"""The networks as Mininet's command makes them: executed, not imported, with arguments that are text."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

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
    assert {net.nodeInfo(host)["classes"] for host in net.hosts()} == {7}


def test_a_leaf_spine_has_every_leaf_at_every_spine(topos) -> None:
    net = topos["leaf_spine"]("4", "2", "3", link_bps="50000000", uplink_bps="2e7")
    assert (len(net.hosts()), len(net.switches()), len(net.links())) == (12, 6, 12 + 8)
    assert net.nodeInfo("s1")["rates_bps"] == {1: 50e6, 2: 50e6, 3: 50e6, 4: 20e6, 5: 20e6}
    assert net.nodeInfo("s5")["rates_bps"] == dict.fromkeys(range(1, 5), 20e6)
    same = topos["leaf_spine"](link_bps="50000000")
    assert set(same.nodeInfo("s1")["rates_bps"].values()) == {50e6}


def test_the_largest_network_has_addresses_for_all(topos) -> None:
    net = topos["testbed"](str(management.LARGEST))
    assert net.nodeInfo(f"h{management.LARGEST}")["ip"] == f"10.0.0.{management.LARGEST}/24"
    assert len({net.nodeInfo(host)["mac"] for host in net.hosts()}) == management.LARGEST


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
    assert plain.nodeInfo("h1")["classes"] == 4

    fabric = experiment(hosts=6, topology="leaf_spine", leaves=3, spines=1, uplink_bps=2e7, queues=5)
    net = network_of(fabric, "user")
    assert (len(net.hosts()), net.switches()) == (6, ["s1", "s2", "s3", "s4"])
    assert net.nodeInfo("s3")["rates_bps"] == {1: 100e6, 2: 100e6, 3: 20e6}
    assert net.nodeInfo("h6")["classes"] == 4
    assert {net.nodeInfo(switch)["datapath"] for switch in net.switches()} == {"user"}

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
