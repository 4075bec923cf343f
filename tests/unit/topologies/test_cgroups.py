"""A cgroup a job: where it goes, who is in it, that it goes again. A plain folder stands in for the kernel's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from topologies import cgroups
from topologies.errors import LabError
from topologies.experiments.workload import LIGHT, generate
from topologies.lab import agents
from topologies.trainer.start import Meeting

V1 = "34 31 0:31 / {place} rw,relatime - cgroup cgroup rw,{controllers}\n"
V2 = "41 31 0:38 / {place} rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
OTHER = "23 1 0:28 / /sys rw,relatime - sysfs sysfs rw\n31 23 0:28 / /odd\\040name rw - tmpfs tmpfs rw,mode=755\n"


def test_the_second_version_is_preferred_and_cpuset_never_taken() -> None:
    text = (
        OTHER
        + V1.format(place="/c/cpuset", controllers="cpuset")
        + V1.format(place="/c/pids", controllers="pids")
        + V2.format(place="/c/all\\040of\\040it")
        + V1.format(place="/c/named", controllers="name=systemd")
    )
    assert cgroups.hierarchies(text) == [Path("/c/all of it"), Path("/c/pids"), Path("/c/named")]
    assert cgroups.hierarchies(OTHER) == []


def test_the_first_that_can_be_written_is_taken(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(V2.format(place="/proc/self/nowhere") + V1.format(place=tmp_path / "one", controllers="freezer"))
    assert cgroups.folder_for("run", mounts) == tmp_path / "one" / "trainyard-run"
    mounts.write_text(OTHER)
    assert cgroups.folder_for("run", mounts) is None


def test_groups_are_made_joined_and_removed(tmp_path: Path) -> None:
    place = tmp_path / "trainyard-run"
    first, second = cgroups.make(place, "a"), cgroups.make(place, "b")
    assert first != second
    assert cgroups.make(place, "a") == first, "the next arm's jobs have the same groups"
    cgroups.join(first)
    assert (first / "cgroup.procs").read_text() == "0\n"
    with pytest.raises(LabError, match="cannot be removed"):
        # A plain folder keeps its file, as the kernel keeps a group with a living process.
        cgroups.remove([place], patience=0.0)
    (first / "cgroup.procs").unlink()
    cgroups.remove([place, tmp_path / "never-made"])
    assert not place.exists()


def test_without_a_hierarchy_or_leave_it_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="none is mounted"):
        cgroups.make(None, "a")
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="cannot make the cgroup"):
        cgroups.make(tmp_path / "file", "a")


def test_this_machines_mounts_can_be_read() -> None:
    assert all(place.is_absolute() for place in cgroups.hierarchies(cgroups.MOUNTS.read_text()))


def test_a_trainer_a_host_or_one_a_host_and_job() -> None:
    experiment = generate(LIGHT, 1)
    hosts = {host for job in experiment.jobs for host in job.hosts}
    shared = agents.trainer_sites(experiment)
    assert [place.host for place in shared] == sorted(hosts, key=lambda host: int(host[1:]))
    assert {place.job for place in shared} == {None}
    apart = agents.trainer_sites(experiment.model_copy(update={"processes": "job"}))
    assert {(place.host, place.job) for place in apart} == {(h, job.id) for job in experiment.jobs for h in job.hosts}
    assert len({place.name for place in apart}) == len(apart)


class Recorder:
    """An emulation with its fork server. It records the orders."""

    def __init__(self) -> None:
        self.fork_server = self
        self.orders: list[tuple[list[str], Path | None]] = []

    def pid(self, host: str) -> int:
        return int(host[1:])

    def cgroup(self, job: str) -> Path:
        return Path("/groups") / job

    def start(self, _program, arguments, *, cgroup, **_options):
        self.orders.append((list(arguments), cgroup))


@pytest.mark.parametrize("processes", ["host", "job"])
def test_the_trainers_are_told_their_job_and_their_group(tmp_path: Path, processes: str) -> None:
    experiment = generate(LIGHT, 1).model_copy(update={"processes": processes})
    network = Recorder()
    agents.Agents(network, tmp_path).start_trainers(experiment, Meeting(tmp_path / "meeting"))
    assert len(network.orders) == len(agents.trainer_sites(experiment))
    for arguments, group in network.orders:
        if processes == "host":
            assert "--job" not in arguments
            assert group is None
        else:
            assert group == Path("/groups") / arguments[arguments.index("--job") + 1]


def test_the_launchers_fork_joins_the_group_before_all_else(tmp_path: Path) -> None:
    """The entering of namespaces fails here, without root; by then the process is in its group."""
    (tmp_path / "job").mkdir()
    order = {
        "log": str(tmp_path / "log"), "cgroup": str(tmp_path / "job"), "namespaces_of": 0, "folder": "/",
        "program": "trainer", "arguments": [],
    }  # fmt: skip
    code = f"from topologies import fork_server; import json; fork_server._enter(json.loads({json.dumps(order)!r}))"
    status = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, env=os.environ).returncode
    assert status != 0
    assert re.search(r"FileNotFoundError.*/proc/0/ns/net", (tmp_path / "log").read_text())
    assert (tmp_path / "job" / "cgroup.procs").read_text() == "0\n"
