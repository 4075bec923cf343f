"""What a lab notes before it makes it, and that it goes whoever takes it down. No switch runs: daemons are scripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.fake_kernel import lives
from topologies import emulation, networks, openvswitch, teardown, userspace
from topologies.errors import LabError
from topologies.signals import ending_signals, held_off

RECORD = teardown.Record(
    "run", ("s1",), ("s1-eth1",), ("/tmp/x",), ("/sys/fs/cgroup/trainyard-run",), "/own.db", 212992
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lab's own folders, in a private place; no tool of Open vSwitch is called, and no other network is there."""
    monkeypatch.setattr(teardown, "_interfaces", list)
    monkeypatch.setattr(teardown, "HOME", tmp_path)
    monkeypatch.setattr(teardown, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(openvswitch, "RUN_FOLDER", tmp_path)
    monkeypatch.setattr(openvswitch, "SOCKET", tmp_path / "db.sock")
    monkeypatch.setattr(openvswitch, "OWN_DATABASE", tmp_path / "own.db")
    monkeypatch.setattr(openvswitch, "_call", lambda _command: None)
    monkeypatch.setattr(userspace, "SETTING", tmp_path / "wmem_default")
    return tmp_path


def test_a_record_comes_back_as_it_was_noted(home: Path) -> None:
    assert teardown.recorded() is None
    teardown.note(RECORD)
    assert teardown.recorded() == RECORD


def test_a_record_of_an_earlier_version_is_still_taken_down(home: Path) -> None:
    old = {"run": "run", "bridges": [], "interfaces": [], "folders": []}
    teardown.RECORD.write_text(json.dumps(old))
    assert teardown.clean()
    assert teardown.recorded() is None


def daemon(home: Path, name: str, *words: str) -> subprocess.Popen[bytes]:
    script = home / name
    script.write_text(f"#!{sys.executable} -S\nimport time\ntime.sleep(1000)\n")
    script.chmod(0o755)
    started = subprocess.Popen([script, *words])
    (home / f"{name}.pid").write_text(f"{started.pid}\n")
    # Until then the process is a copy of this one.
    wait_until(lambda: Path(f"/proc/{started.pid}/comm").read_text().strip() == name, 200.0)
    threading.Thread(target=started.wait, daemon=True).start()
    return started


def test_the_switch_that_a_killed_lab_had_started_is_ended(home: Path) -> None:
    own = home / "own.db"
    own.touch()
    daemons = [daemon(home, "ovsdb-server", str(own)), daemon(home, "ovs-vswitchd", "unix:x")]
    (home / "group" / "job").mkdir(parents=True)
    teardown.note(teardown.Record("run", cgroups=(str(home / "group"),), database=str(own)))
    assert teardown.clean()
    assert not any(lives(child.pid) for child in daemons)
    assert not own.exists()
    assert not (home / "group").exists()
    assert teardown.recorded() is None


def test_the_machines_setting_comes_back_that_a_killed_lab_had_changed(home: Path) -> None:
    userspace.SETTING.write_text("212992\n")
    teardown.note(teardown.Record("run", send_bytes=userspace.send_bytes()))
    userspace.set_send_bytes(userspace.SEND_BYTES)
    assert teardown.clean()
    assert userspace.send_bytes() == 212992


def test_a_setting_that_cannot_be_changed_is_one_line(home: Path) -> None:
    userspace.SETTING.mkdir()
    with pytest.raises(LabError, match=r"wmem_default cannot be set \(.*\); .* use --datapath uml"):
        userspace.set_send_bytes(1)


def test_somebody_elses_switch_is_left_alone(home: Path) -> None:
    daemons = [daemon(home, "ovsdb-server", "/etc/openvswitch/conf.db"), daemon(home, "ovs-vswitchd", "unix:x")]
    try:
        openvswitch.end(home / "own.db")
        teardown.note(teardown.Record("run"))
        assert teardown.clean()
        assert all(lives(child.pid) for child in daemons)
    finally:
        for child in daemons:
            child.kill()


def test_a_pid_file_of_something_else_is_not_believed(home: Path) -> None:
    (home / "ovs-vswitchd.pid").write_text(f"{os.getpid()}\n")
    (home / "ovsdb-server.pid").write_text("what\n")
    openvswitch.end(home / "own.db")


@pytest.mark.parametrize("runs_already", [True, False])
def test_a_switch_of_its_own_is_noted_before_it_is_started(
    home: Path, monkeypatch: pytest.MonkeyPatch, runs_already: bool
) -> None:
    noted: list[teardown.Record | None] = []

    def start() -> None:
        noted.append(teardown.recorded())
        raise openvswitch.OpenVSwitchError("does not start")

    def network(*_arguments: object) -> None:
        noted.append(teardown.recorded())
        raise openvswitch.OpenVSwitchError("does not start")

    monkeypatch.setattr(openvswitch, "running", lambda: runs_already)
    monkeypatch.setattr(openvswitch, "start", start)
    monkeypatch.setattr(teardown, "_remove_bridges", lambda _bridges: None)
    monkeypatch.setattr(emulation, "_start", network)
    with (
        pytest.raises(openvswitch.OpenVSwitchError, match="does not start"),
        emulation.emulate(networks.Testbed(servers=2)),
    ):
        pytest.fail("it cannot have started")
    (record,) = noted
    assert record is not None
    assert record.database == ("" if runs_already else str(home / "own.db"))
    assert record.bridges == ("s1",)
    assert teardown.recorded() is None, "what failed to start was taken down"


def test_ending_signals_end_and_ignored_ones_stay_ignored() -> None:
    before, ending = signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended, ending_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        assert ended.value.code == 128 + signal.SIGTERM
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is ending
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_waits_for_the_take_down_and_ends_the_program_after_it() -> None:
    done = threading.Event()
    beside = threading.Thread(target=done.wait)
    beside.start()
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    said = ""
    try:
        with pytest.raises(SystemExit) as ended, ending_signals():
            with held_off():
                os.kill(os.getpid(), signal.SIGHUP)
                # To this thread, and to another, which the kernel may choose as well.
                signal.raise_signal(signal.SIGTERM)
                assert beside.ident is not None
                signal.pthread_kill(beside.ident, signal.SIGTERM)
                # On a busy machine that thread may take its signal only when nothing holds it off any more.
                status = Path(f"/proc/self/task/{beside.native_id}/status")
                wait_until(lambda: "SigPnd:\t0000000000000000" in status.read_text(), what="the other thread's signal")
                # Ctrl-C in a terminal goes to all that runs there.
                tool = subprocess.run(["sh", "-c", "kill -INT $$; echo did it"], stdout=subprocess.PIPE, check=True)
                said = tool.stdout.decode()
            pytest.fail("the program goes on after the take-down")
        assert said == "did it\n"
        assert ended.value.code == 128 + signal.SIGTERM
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == blocked
    finally:
        signal.signal(signal.SIGHUP, before)
        done.set()
        beside.join()


def test_a_take_down_that_fails_says_so_although_a_signal_came() -> None:
    with pytest.raises(LabError, match="it stays"), ending_signals(), held_off():
        signal.raise_signal(signal.SIGTERM)
        raise LabError("it stays")
