"""Whatever becomes of a lab, nothing of it stays: namespaces, interfaces, qdiscs, switch rows, processes, files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.lab.endless_job import experiment
from tests.support.paths import ROOT
from topologies import cgroups, networks, openvswitch, teardown
from topologies.emulation import emulate
from topologies.errors import LabError
from topologies.fork_server import ForkServerError
from topologies.lab.lab import run_arms
from topologies.lab.results import LabEvent

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

KERNELS_OWN = ("kworker", "ps", "bpfilter_umh")
"""Processes that come and go by themselves; the last one the kernel starts at the first use of iptables, for good."""


ROWS, ALL = ("qos", "queue", "port"), ("--columns=_uuid", "list")


def traces() -> dict[str, object]:
    """All that a lab could leave behind."""

    def lines(*command: str) -> list[str]:
        return sorted(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())

    namespaces = {str(path.readlink()) for path in Path("/proc").glob("[0-9]*/ns/net") if os.access(path, os.R_OK)}
    return {
        "interfaces": [line.split()[0] for line in lines("ip", "-br", "link") if not line.startswith("ovs-system")],
        "qdiscs": [line for line in lines("tc", "qdisc") if "ovs-system" not in line],
        "namespaces": sorted(namespaces),
        # By one command, because in a box each takes a quarter of a second.
        "bridges and rows": lines("ovs-vsctl", "list-br", *(word for table in ROWS for word in ("--", *ALL, table))),
        "processes": sorted(name for name in map(name_of, processes()) if not name.startswith(KERNELS_OWN)),
        "files": sorted(str(path) for path in teardown.HOME.glob("*") if path.name != "lock"),
        "cgroups": sorted(str(path) for path in groups()),
    }


def groups() -> list[Path]:
    hierarchies = cgroups.hierarchies(cgroups.MOUNTS.read_text())
    return [group for hierarchy in hierarchies for group in hierarchy.glob("trainyard-*")]


def processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdigit()]


def name_of(process: Path) -> str:
    try:
        words = (process / "cmdline").read_text().split("\0")
        return " ".join(words).strip() or (process / "comm").read_text().strip()
    except OSError:
        return "ps"


ARMS = """
import sys
from pathlib import Path
from tests.support.lab.endless_job import experiment
from topologies.lab.lab import run_arms
def show(event):
    if event.phase == "arm" and event.seconds > 1:
        print("up", flush=True)
run_arms(experiment(), ["fair"], progress=show, results_dir=Path(sys.argv[1]))
"""


def wait_until_gone(before: dict[str, object]) -> None:
    """Wait until no trace of a lab is left; the failure says which trace stays."""
    try:
        wait_until(lambda: traces() == before)
    except AssertionError:
        pytest.fail(str(difference(before)))


@contextmanager
def lab(script: str = LAB, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A lab that is up, in a process of its own."""
    command = [sys.executable, "-c", script, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
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
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_lab_that_is_stopped_and_again_meanwhile_leaves_nothing(number: signal.Signals, status: int) -> None:
    with openvswitch.started():
        before = traces()
        with lab() as process:
            assert traces() != before
            process.send_signal(number)
            # Its processes go first, and some of them, the hosts' shells, not before they are forced a second later.
            wait_until(lambda: "sleep 1000" not in map(name_of, processes()))
            assert teardown.RECORD.exists(), "all is down already: too late to be a second signal meanwhile"
            process.send_signal(number)
            assert process.wait(30) == status
        wait_until_gone(before)


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
        wait_until_gone(before)


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


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
def test_a_whole_run_that_ends_in_an_arm_leaves_nothing_after_the_next(number: signal.Signals, tmp_path: Path) -> None:
    with openvswitch.started():
        teardown.clean()
        before = traces()
        with lab(ARMS, str(tmp_path)) as process:
            assert len(groups()) == 1
            process.send_signal(number)
            process.wait(60)
        if number == signal.SIGKILL:
            assert traces() != before
            with emulate(networks.Testbed(servers=2)):
                assert len(groups()) == 0
        wait_until_gone(before)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("command_line", "error", "said"),
    [
        ("controller.app", LabError, "the controller does not run; its log ends:"),
        ("topologies.fork_server", ForkServerError, "the launcher of agents and trainers has ended"),
    ],
    ids=["controller", "launcher"],
)
def test_a_part_that_dies_in_an_arm_is_one_error_and_all_goes(
    command_line: str, error: type[LabError], said: str, tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill(event: LabEvent) -> None:
        if event.phase == "arm" and event.seconds > 1 and not killed:
            # The launcher's forks have its command line too; the launcher itself is our child.
            killed.extend(pid for pid in children() if command_line in name_of(Path(f"/proc/{pid}")))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    with openvswitch.started():
        teardown.clean()
        before = traces()
        with pytest.raises(error, match=said):
            run_arms(experiment(), ["fair", "jpas"], progress=kill, results_dir=tmp_path)
        assert len(killed) == 1
        wait_until_gone(before)
    assert (tmp_path / "endless-0" / "fair" / "controller" / "controller.log").exists(), "the logs are kept"


def children() -> list[int]:
    found = []
    for process in processes():
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid():
            found.append(int(process.name))
    return found


@pytest.fixture
def no_switch(alone: None) -> Iterator[None]:
    """Open vSwitch does not run; what ran comes back."""
    commands = []
    for name in ("ovs-vswitchd", "ovsdb-server"):
        pid_file = openvswitch.RUN_FOLDER / f"{name}.pid"
        if pid_file.exists():
            pid = int(pid_file.read_text())
            commands.insert(0, Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1])
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
    assert not openvswitch.running()
    yield
    for command in commands:
        subprocess.run(command, check=True)
    if commands:
        wait_until(openvswitch.running)


@pytest.mark.usefixtures("alone")
def test_a_switch_that_hangs_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with openvswitch.started(), ExitStack() as network:
        before = traces()
        network.enter_context(emulate(networks.Testbed(servers=2)))
        switch = int((openvswitch.RUN_FOLDER / "ovs-vswitchd.pid").read_text())
        os.kill(switch, signal.SIGSTOP)
        try:
            with (
                monkeypatch.context() as patch,
                pytest.raises(openvswitch.NoAnswerError, match="not answer within 1 s"),
            ):
                patch.setattr(openvswitch, "_ANSWER_SECONDS", 1)
                network.close()
        finally:
            os.kill(switch, signal.SIGCONT)
        assert "s1" in openvswitch.vsctl("list-br").split()
        with emulate(networks.Testbed(servers=2)) as emulation:
            assert emulation.bridges == ("s1",)
        wait_until_gone(before)


def daemons() -> list[str]:
    return sorted(name for name in map(name_of, processes()) if name.startswith(("ovsdb-server", "ovs-vswitchd")))


@pytest.mark.usefixtures("no_switch")
def test_a_switch_of_its_own_ends_with_the_lab() -> None:
    with emulate(networks.Testbed(servers=2)):
        assert len(daemons()) == 2
    assert daemons() == []
    assert not openvswitch.OWN_DATABASE.exists()


@pytest.mark.usefixtures("no_switch")
@pytest.mark.parametrize("switch_dies_too", [False, True])
def test_the_switch_of_a_lab_that_was_killed_is_ended_by_the_next(switch_dies_too: bool) -> None:
    with lab() as process:
        assert len(daemons()) == 2
        process.kill()
        process.wait(30)
        if switch_dies_too:
            for name in ("ovs-vswitchd", "ovsdb-server"):
                os.kill(int((openvswitch.RUN_FOLDER / f"{name}.pid").read_text()), signal.SIGKILL)
            wait_until(lambda: daemons() == [])
        else:
            assert len(daemons()) == 2
    done = subprocess.run(
        [sys.executable, "-m", "topologies.teardown"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert daemons() == []
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    assert "s1" not in links
    with emulate(networks.Testbed(servers=2)) as emulation:
        assert emulation.hosts == ("h1", "h2")
    assert daemons() == []


def difference(before: dict[str, object]) -> str:
    return "; ".join(f"{name}: {before[name]} -> {now}" for name, now in traces().items() if now != before[name])
