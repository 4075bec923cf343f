"""The look through /proc, with real processes: what is new, what has become another program, what is gone."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter import procfs
from host_reporter.launchers import processes as processes_module
from host_reporter.launchers.facts import Pod
from host_reporter.launchers.pods import Pods
from host_reporter.launchers.processes import TURN_LOOKS, Processes
from host_reporter.launchers.registry import choose
from host_reporter.notices import Notices
from tests.support.agent.started import PATH, end, started, unique


class Looking(Processes):
    def __init__(self) -> None:
        super().__init__(choose(["trainyard", "torchrun"]), "h1", Notices(logging.getLogger("test")))

    def names(self, pid: int) -> str | None:
        self.look()
        seen = self.seen.get(pid)
        return seen.sighting.name if seen is not None else None


def test_a_process_with_the_variables_is_seen_and_forgotten_with_its_end() -> None:
    looking = Looking()
    with started({"TRAINYARD_JOB": "x y"}) as process, started({}) as other:
        wait_until(lambda: looking.names(process.pid) == "x-y", 60)
        assert other.pid not in looking.seen
        seen = looking.seen[process.pid]
        assert seen.process == procfs.identify(process.pid)
        assert seen.parent == looking.parent_of(process.pid) != 0
        version = looking.version
        for _ in range(3):
            looking.look()
        assert looking.version == version or len(looking.seen) > 1, "what has not changed is no news"
    assert looking.names(process.pid) is None
    assert looking.version > version


def test_a_zombie_is_no_process_of_a_job() -> None:
    looking = Looking()
    with started({"TRAINYARD_JOB": "x"}) as process:
        wait_until(lambda: looking.names(process.pid) == "x", 60)
        process.kill()
        wait_until(lambda: looking.names(process.pid) is None, 5)
        assert Path(f"/proc/{process.pid}").exists(), "nobody has asked for it yet"


@pytest.mark.parametrize("wait", [0.0, 0.5])
def test_what_exec_makes_of_a_process_is_seen(wait: float) -> None:
    """A shell script that becomes the training keeps its id and its start."""
    looking = Looking()
    script = f"sleep {wait}; exec env TRAINYARD_JOB=late sleep 600"
    with started({}, ("sh", "-c", script)) as process:
        before = procfs.identify(process.pid)
        looking.look()
        wait_until(lambda: looking.names(process.pid) == "late", 10)
        assert procfs.identify(process.pid) == before


def test_what_exec_makes_late_is_seen_at_its_turn() -> None:
    looking = Looking()
    with started({}, ("sh", "-c", "sleep 0.3; exec env TRAINYARD_JOB=late sleep 600")) as process:
        for _ in range(8):
            looking.look()
        environment = Path(f"/proc/{process.pid}/environ")
        wait_until(lambda: b"TRAINYARD_JOB=late" in environment.read_bytes(), 60)
        for _ in range(TURN_LOOKS + 2):
            looking.look()
        assert process.pid in looking.seen


TITLE = """
import ctypes, time
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
raw = ctypes.cast(environ, ctypes.POINTER(ctypes.c_void_p))
number = 0
while raw[number]:
    ctypes.memset(raw[number], 0, len(ctypes.string_at(raw[number])))
    number += 1
print("done", flush=True)
time.sleep(600)
"""


def test_a_program_that_writes_its_title_over_its_environment_is_still_known(tmp_path: Path) -> None:
    looking, begin = Looking(), tmp_path / "begin"
    with (tmp_path / "out").open("wb") as out:
        script = f"import os, time\nwhile not os.path.exists({str(begin)!r}): time.sleep(0.01)\n" + TITLE
        with started({"TRAINYARD_JOB": "x"}, (sys.executable, "-S", "-c", script), out=out) as process:
            wait_until(lambda: looking.names(process.pid) == "x", 60)
            begin.touch()
            wait_until(lambda: (tmp_path / "out").read_text() == "done\n", 20)
            assert b"TRAINYARD" not in Path(f"/proc/{process.pid}/environ").read_bytes()
            for _ in range(12):
                assert looking.names(process.pid) == "x"


def test_an_id_that_comes_again_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    looking = Looking()
    with started({"TRAINYARD_JOB": "x"}) as process:
        wait_until(lambda: looking.names(process.pid) == "x", 60)
        first = looking.seen[process.pid].process
        real = procfs.state_of

        def again(pid: int) -> procfs.State | None:
            state = real(pid)
            if state is None or pid != process.pid:
                return state
            return state._replace(process=procfs.Process(pid, state.process.started + 7))

        monkeypatch.setattr(procfs, "state_of", again)
        for _ in range(6):
            looking.look()
        assert looking.seen[process.pid].process == procfs.Process(first.pid, first.started + 7)


def test_a_look_reads_few_processes_when_nothing_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    looking = Looking()
    for _ in range(12):
        looking.look()
    read: list[int] = []
    real = procfs.state_of
    monkeypatch.setattr(procfs, "state_of", lambda pid: read.append(pid) or real(pid))
    known = len(looking._known)
    looks = 5
    for _ in range(looks):
        looking.look()
    assert len(read) <= looks * (known / TURN_LOOKS + len(looking.seen) + 40)


def test_one_look_reads_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes_module, "MAX_READ", 5)
    looking = Looking()
    name = unique()
    with started({"TRAINYARD_JOB": name}) as process:
        looking.look()
        assert not looking.is_complete
        wait_until(lambda: looking.names(process.pid) == name, 60)


def test_an_environment_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    # PATH comes first, and its length is this machine's.
    monkeypatch.setattr(processes_module, "MAX_ENVIRONMENT", len(PATH) + 300)
    looking = Looking()
    with started({"A": "x" * 1000, "TRAINYARD_JOB": "x"}) as process, started({"TRAINYARD_JOB": "y"}) as other:
        # A look reads only so many processes, the oldest first.
        wait_until(lambda: looking.names(other.pid) == "y", 60)
        assert looking.names(process.pid) is None
    monkeypatch.setattr(processes_module, "MAX_VALUE", 4)
    with started({"TRAINYARD_JOB": "abcdefgh"}) as process:
        wait_until(lambda: looking.names(process.pid) == "abcd", 60)
        end(process)


# Pods ----------------------------------------------------------------------------------------------------------------


def test_the_names_of_pods(tmp_path: Path) -> None:
    folder = tmp_path / "pods"
    pods = Pods(folder)
    assert pods.find("u1") is None, "there is no Kubernetes here"
    (folder / "ns_pt-worker-0_u1").mkdir(parents=True)
    (folder / "a_b_c_d").mkdir()
    (folder / "ns_file_u2").write_text("")
    assert pods.find("u1") == Pod("ns", "pt-worker-0")
    assert pods.folder("u1") == folder / "ns_pt-worker-0_u1"
    assert pods.find("c_d") is None and pods.find("u2") is None
    (folder / "ns_pt-worker-1_u3").mkdir()
    assert pods.find("u3") == Pod("ns", "pt-worker-1")
    (folder / "ns_pt-worker-0_u1").rmdir()
    wait_until(lambda: pods.find("u1") is None, 5)


def test_a_folder_in_which_others_may_write_names_no_pod(tmp_path: Path) -> None:
    (tmp_path / "ns_p_u1").mkdir()
    tmp_path.chmod(0o777)
    assert Pods(tmp_path).find("u1") is None
