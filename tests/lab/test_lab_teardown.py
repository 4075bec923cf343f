"""Whatever becomes of a lab, nothing of it stays: namespaces, interfaces, qdiscs, switch rows, processes, files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.network_helpers import poll
from topologies import networks, openvswitch, teardown
from topologies.emulation import emulate

LAB = """
import sys, time
from topologies.emulation import emulate
from topologies.networks import Testbed
with emulate(Testbed(servers=3)) as emulation:
    emulation.connect_controller()
    emulation.popen("h1", ["sleep", "1000"])
    emulation.popen(None, ["sleep", "1000"])
    print("up", flush=True)
    time.sleep(1000)
"""


def traces() -> dict[str, object]:
    """All that a lab could leave behind."""

    def lines(*command: str) -> list[str]:
        return sorted(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())

    namespaces = {str(path.readlink()) for path in Path("/proc").glob("[0-9]*/ns/net") if os.access(path, os.R_OK)}
    return {
        "interfaces": [line.split()[0] for line in lines("ip", "-br", "link") if not line.startswith("ovs-system")],
        "qdiscs": [line for line in lines("tc", "qdisc") if "ovs-system" not in line],
        "namespaces": sorted(namespaces),
        "bridges": lines("ovs-vsctl", "list-br"),
        "rows": [lines("ovs-vsctl", "--columns=_uuid", "list", table) for table in ("qos", "queue", "port")],
        "processes": sorted(name for name in map(name_of, processes()) if not name.startswith(("kworker", "ps"))),
        "files": sorted(str(path) for path in teardown.HOME.glob("*") if path.name != "lock"),
    }


def processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdigit()]


def name_of(process: Path) -> str:
    try:
        words = (process / "cmdline").read_text().split("\0")
        return " ".join(words).strip() or (process / "comm").read_text().strip()
    except OSError:
        return "ps"


@contextmanager
def lab() -> Iterator[subprocess.Popen[str]]:
    """A lab that is up, in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", LAB], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        # Not read to its end: what the lab has started may hold it open.
        process.stdout.close()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_lab_that_is_stopped_leaves_nothing(number: signal.Signals) -> None:
    with openvswitch.started():
        before = traces()
        with lab() as process:
            assert traces() != before
            process.send_signal(number)
            process.wait(30)
        assert poll(lambda: traces() == before), difference(before)


@pytest.mark.usefixtures("alone")
def test_a_lab_that_was_killed_is_cleaned_up_by_the_next() -> None:
    with openvswitch.started():
        before = traces()
        with lab() as process:
            process.kill()
            process.wait(30)
            assert traces() != before
        with emulate(networks.Testbed(servers=2)) as emulation:
            assert emulation.hosts == ("h1", "h2")
            assert "h3" not in emulation.run(None, ["ip", "-br", "link"])
        assert poll(lambda: traces() == before), difference(before)


@pytest.mark.usefixtures("alone")
def test_what_is_not_ours_is_left_alone() -> None:
    subprocess.run(["ip", "link", "add", "s1-eth1", "type", "dummy"], check=True)
    try:
        with pytest.raises(teardown.TeardownError, match="s1-eth1 exists"), emulate(networks.Testbed(servers=2)):
            pytest.fail("the network started over someone else's interface")
        assert "s1-eth1" in subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    finally:
        subprocess.run(["ip", "link", "del", "s1-eth1"], check=True)


@pytest.mark.usefixtures("alone")
def test_two_labs_do_not_share_a_machine() -> None:
    with (
        lab(),
        pytest.raises(teardown.TeardownError, match="another lab runs"),
        emulate(networks.Testbed(servers=2)),
    ):
        pytest.fail("two labs at once")


def difference(before: dict[str, object]) -> str:
    return "; ".join(f"{name}: {before[name]} -> {now}" for name, now in traces().items() if now != before[name])
