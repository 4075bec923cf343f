"""The networks by Mininet's own command, without a controller of ours: they start, they carry packets, they go."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from topologies import networks, openvswitch

NETWORKS = Path(networks.__file__)


def mn(*arguments: str) -> str:
    done = subprocess.run(
        ["mn", "--custom", str(NETWORKS), *arguments], capture_output=True, text=True, check=False, timeout=240,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    return told


def interfaces() -> set[str]:
    lines = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[0].partition("@")[0] for line in lines} - {"ovs-system"}


# A switch of ours fails secure: without rules it forwards nothing. So Mininet is told to set one rule itself, and to
# run its tests from a script: without a controller its own test would wait for one.
FORWARD = "ovs-ofctl -O OpenFlow13 add-flow {} actions=normal"


@pytest.mark.usefixtures("alone")
def test_the_testbed_starts_and_all_hosts_reach_each_other(tmp_path: Path) -> None:
    with openvswitch.started():
        before = interfaces()
        script = tmp_path / "commands"
        script.write_text(f"sh {FORWARD.format('s1')}\npingall\nh1 tc qdisc show dev h1-eth0\n")
        told = mn("--topo", "testbed,3", "--controller", "none", "--post", str(script), "--test", "none")
        assert "0% dropped (6/6 received)" in told, told
        assert "htb" in told, "the host's NIC is not limited"
        assert interfaces() == before
        assert openvswitch.vsctl("list-br").split() == []
        assert openvswitch.vsctl("--columns=_uuid", "list", "queue").strip() == ""


@pytest.mark.usefixtures("alone")
def test_a_leaf_spine_without_a_loop_carries_all_and_with_loops_it_starts(tmp_path: Path) -> None:
    with openvswitch.started():
        before = interfaces()
        # One spine: a tree, so that plain learning switches may forward.
        script = tmp_path / "commands"
        script.write_text("".join(f"sh {FORWARD.format(f's{n}')}\n" for n in (1, 2, 3)) + "pingall\n")
        one_spine = "leaf_spine,2,1,2,link_bps=50000000"
        told = mn("--topo", one_spine, "--controller", "none", "--post", str(script), "--test", "none")
        assert "0% dropped (12/12 received)" in told, told
        # Two spines are a loop: without rules nothing moves, and that is all that can be asked without a controller.
        script.write_text("pingall\n")
        told = mn("--topo", "leaf_spine,2,2,1", "--controller", "none", "--test", "none", "--post", str(script))
        assert "100% dropped" in told, told
        assert interfaces() == before


@pytest.mark.usefixtures("alone")
def test_a_network_that_cannot_be_is_one_line_and_takes_nothing_down() -> None:
    done = subprocess.run(
        ["mn", "--custom", str(NETWORKS), "--topo", "testbed,300"], capture_output=True, text=True, check=False,
        timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1
    assert "testbed: servers: 300 is not a whole number from 1 to 253" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Cleaning up" not in done.stdout + done.stderr
