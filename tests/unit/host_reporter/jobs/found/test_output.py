"""Where the output of real processes is found: files behind descriptors, containers' logs, files that are open."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.found.output import Outputs
from host_reporter.launchers.facts import Pod
from host_reporter.launchers.launcher import Sighting
from host_reporter.launchers.processes import Seen
from host_reporter.procfs import Process, identify
from host_reporter.readers.location import Location
from tests.support.agent.found import Finding
from tests.support.agent.started import started, unique

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the kubelet's and Docker's folders are root's")
UID = "1b2c3d4e-0000-4000-8000-0123456789ab"
CONTAINER = "a" * 64
IN_POD = f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope"


@pytest.fixture
def finding(tmp_path: Path) -> Finding:
    return Finding(tmp_path)


def location_of(finding: Finding, name: str) -> Location | None:
    for _ in range(4):
        finding.look(skip=3)
    (job,) = finding.of([name])
    return finding.jobs[job].location


def test_a_redirected_output(finding: Finding, tmp_path: Path) -> None:
    name = unique()
    file = tmp_path / "train.log"
    with file.open("wb") as out, started({"TRAINYARD_JOB": name}, out=out) as process:
        location = location_of(finding, name)
        assert location is not None
        assert (location.path, location.shown) == (Path(f"/proc/{process.pid}/fd/1"), str(file))
        assert (location.kind, location.follow_links, location.owner) == (None, True, os.getuid())
        file.write_text("moved\n")
        file.rename(tmp_path / "elsewhere")
        assert location.path.read_text() == "moved\n", "it is the very file that the process writes to"


def test_an_output_that_says_nothing_and_errors_that_do(finding: Finding, tmp_path: Path) -> None:
    name = unique()
    (tmp_path / "err").write_text("epoch 1\n")
    with (
        (tmp_path / "out").open("ab") as out,
        (tmp_path / "err").open("ab") as errors,
        started({"TRAINYARD_JOB": name}, out=out, errors=errors) as process,
    ):
        location = location_of(finding, name)
        assert location is not None and location.path == Path(f"/proc/{process.pid}/fd/2")


@pytest.mark.parametrize("what", ["pipe", "terminal", "device", "fifo", "read only"])
def test_what_is_no_regular_file_is_not_opened(
    finding: Finding, tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = unique()
    opened: list[int] = []
    if what == "pipe":
        opened = list(os.pipe())
    elif what == "terminal":
        opened = list(os.openpty())
    elif what == "device":
        opened = [os.open("/dev/null", os.O_WRONLY)]
    elif what == "fifo":
        os.mkfifo(tmp_path / "fifo")
        opened = [os.open(tmp_path / "fifo", os.O_RDWR)]
    else:
        (tmp_path / "data.jsonl").write_text("{}\n")
        opened = [os.open(tmp_path / "data.jsonl", os.O_RDONLY)]
    try:
        with started({"TRAINYARD_JOB": name}, out=opened[-1], errors=opened[-1]):
            assert location_of(finding, name) is None
            for _ in range(10):
                finding.look(skip=5)
            assert f"{name}: no file has its output" in caplog.text
            assert "redirect its output to a file" in caplog.text
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_the_output_of_rank_0_alone(finding: Finding, tmp_path: Path) -> None:
    run = unique()
    ranks = {"WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": run, "MASTER_ADDR": "h1", "MASTER_PORT": "1"}
    with (
        (tmp_path / "0").open("wb") as zero,
        (tmp_path / "1").open("wb") as one,
        started(ranks | {"RANK": "1"}, out=one),
        started(ranks | {"RANK": "0"}, out=zero) as first,
    ):
        location = location_of(finding, run)
        assert location is not None and location.path == Path(f"/proc/{first.pid}/fd/1")


def test_the_output_of_mpirun_where_its_ranks_print_into_its_pipe(finding: Finding, tmp_path: Path) -> None:
    shutil.copy("/bin/sh", tmp_path / "mpirun")
    namespace = unique()
    rank = f"env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 PMIX_NAMESPACE={namespace} PMIX_RANK=0 sleep 600"
    with (tmp_path / "out").open("wb") as out:
        command = (str(tmp_path / "mpirun"), "-c", f"({rank}) 2>&1 | cat")
        with started({}, command, out=out) as mpirun:
            location = location_of(finding, namespace)
            assert location is not None and location.path == Path(f"/proc/{mpirun.pid}/fd/1")


def test_the_file_that_srun_alone_has_open_and_after_it_that_of_the_script(finding: Finding, tmp_path: Path) -> None:
    shutil.copy("/bin/sh", tmp_path / "srun")
    os.mkfifo(tmp_path / "end")
    name = unique()
    step = f"{tmp_path}/srun -c 'exec 4>{tmp_path}/step.out; read line' < {tmp_path}/end"
    script = f"exec 3>{tmp_path}/scripts.own; {step}; sleep 600"
    with (
        (tmp_path / "batch.out").open("wb") as out,
        started({"TRAINYARD_JOB": name}, ("sh", "-c", script), out=out),
        (tmp_path / "end").open("w") as ending,
    ):
        wait_until((tmp_path / "step.out").exists, what="the step begins")
        location = location_of(finding, name)
        assert location is not None and location.shown == str(tmp_path / "step.out")
        ending.write("\n")
        ending.flush()
        wait_until(lambda: Outputs.is_gone(location), what="the step ends")
        location = location_of(finding, name)
        assert location is not None and location.shown == str(tmp_path / "batch.out")


WRITER = """
import sys, time
files = [open(path, "a") for path in sys.argv[1:]]
data = open("/etc/passwd")
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("metrics.csv", "csv"),
        ("results.csv", "csv"),
        ("training.log", None),
        ("log.jsonl", "jsonl"),
        ("trainer_state.json", "trainer-state"),
        ("events.out.tfevents.1.host", "tensorboard"),
    ],
)
def test_files_that_it_holds_open(finding: Finding, tmp_path: Path, name: str, kind: str) -> None:
    job = unique()
    folder = tmp_path / "run"
    folder.mkdir()
    command = (sys.executable, "-S", "-c", WRITER, str(folder / name), str(folder / "other.txt"))
    with started({"TRAINYARD_JOB": job}, command):
        finding.wait(lambda: finding.of([job]) and location_of(finding, job))
        location = location_of(finding, job)
        assert location is not None and location.kind == kind
        if kind == "tensorboard":
            assert (location.path, location.owner) == (folder, os.getuid())
        else:
            assert location.path.read_text() == "" and location.shown == str(folder / name)


def test_the_helpers_file_counts_before_all(finding: Finding, tmp_path: Path) -> None:
    name = unique()
    with (tmp_path / "out").open("wb") as out, started({"TRAINYARD_JOB": name}, out=out):
        assert location_of(finding, name) is not None
        file = finding.progress / f"{name}.jsonl"
        file.write_text('{"iteration": 1}\n')
        location = location_of(finding, name)
        assert location == Location(file, str(file), "jsonl", follow_links=False, owner=os.getuid())
        assert finding.found.claimed >= {name}


def test_the_helpers_file_of_another_name_is_found_where_it_is_open(finding: Finding) -> None:
    name = unique()
    command = (sys.executable, "-S", "-c", WRITER, str(finding.progress / "other.jsonl"))
    with started({"TRAINYARD_JOB": name}, command):
        finding.wait(lambda: finding.of([name]) and location_of(finding, name))
        location = location_of(finding, name)
        assert location is not None and location.shown == str(finding.progress / "other.jsonl")


# Containers ----------------------------------------------------------------------------------------------------------


def in_container(*cgroups: str) -> Seen:
    process = identify(os.getpid())
    assert process is not None
    return Seen(Process(2**22 + 5, 1), 1, 0, Sighting("kubernetes", "k8s-ns.p", trust="cgroup", rank=0), cgroups)


@ROOT
def test_the_log_of_a_pods_container(finding: Finding, tmp_path: Path) -> None:
    outputs: Outputs = finding.outputs
    seen = in_container(IN_POD)
    assert outputs.find([seen], []) is None
    folder = finding.pods / f"ns_p_{UID}" / "train"
    folder.mkdir(parents=True)
    assert finding.processes.pods.find(UID) == Pod("ns", "p")
    assert outputs.find([seen], []) is None, "nothing is printed yet"
    for number in ("0.log", "9.log", "10.log", "10.log.20260101-000000", "x.log"):
        (folder / number).write_text("")
    expected = Location(folder / "10.log", str(folder / "10.log"), "cri", follow_links=False, owner=0)
    assert outputs.find([seen], []) == expected
    (folder.parent / "sidecar").mkdir()
    (folder.parent / "sidecar" / "0.log").write_text("")
    assert outputs.find([seen], []) is None, "which of them it is is not known"
    (tmp_path / "containers").mkdir()
    (tmp_path / "containers" / f"p_ns_train-{CONTAINER}.log").symlink_to(folder / "10.log")
    assert outputs.find([seen], []) == expected


@ROOT
def test_dockers_json_lines(finding: Finding) -> None:
    outputs: Outputs = finding.outputs
    file = finding.docker / CONTAINER / f"{CONTAINER}-json.log"
    for cgroup in (f"/docker/{CONTAINER}", f"/system.slice/docker-{CONTAINER}.scope"):
        assert outputs.find([in_container(cgroup)], []) is None or file.exists()
    file.parent.mkdir(parents=True)
    file.write_text("")
    for cgroup in (f"/docker/{CONTAINER}", f"/system.slice/docker-{CONTAINER}.scope/init"):
        assert outputs.find([in_container(cgroup)], []) == Location(
            file, str(file), "docker-json", follow_links=False, owner=0
        )
    assert outputs.find([in_container(f"/user.slice/docker/{CONTAINER}")], []) is None
