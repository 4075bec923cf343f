"""What MPI, torchrun and containers really give their processes when no batch system is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.launchers.containers.pod_scenarios import PODS
from tests.support.launchers.containers.podman import Containers
from tests.support.launchers.machine.cgroups import hierarchies
from tests.support.launchers.machine.users import User, root, somebody
from tests.support.launchers.recording.containers import CONTAINER, record_container, record_pod
from tests.support.launchers.recording.launch import Launch
from tests.support.launchers.recording.scenarios import MPI, TORCH, Batch, Direct

Process = dict[str, Any]


def launched(place: Path, scenario: Batch | Direct, user: User) -> tuple[list[Process], dict[int, Process]]:
    """The processes of a launch, and its ranks by what the labels say."""
    assert isinstance(scenario, Direct)
    processes = Launch(place, user, {}).record_direct(scenario)["processes"]
    return processes, {process["rank"]: process for process in processes if process["rank"] is not None}


@pytest.mark.parametrize(
    ("name", "rank", "output"), [("open-mpi", "OMPI_COMM_WORLD_RANK", "/dev/pts/"), ("mpich", "PMI_RANK", "pipe:")]
)
def test_mpis_ranks_write_to_their_launcher_which_has_the_file(
    mpi: None, place: Path, name: str, rank: str, output: str
) -> None:
    processes, found = launched(place, MPI[name], somebody())
    assert {number: process["environment"][rank] for number, process in found.items()} == {0: "0", 1: "1", 2: "2"}
    assert all(process["descriptors"]["1"].startswith(output) for process in found.values())
    (launcher,) = (process for process in processes if process["command"][0].startswith("mpi"))
    assert launcher["descriptors"]["1"] == "/home/alice/run.out"


def test_torchruns_ranks_have_one_run_and_its_labels_their_rank(torch: None, place: Path) -> None:
    processes, found = launched(place, TORCH["torchrun-tee"], root())
    assert {number: process["environment"]["RANK"] for number, process in found.items()} == {0: "0", 1: "1"}
    assert len({process["environment"]["TORCHELASTIC_RUN_ID"] for process in found.values()}) == 1
    assert found[0]["descriptors"]["1"].endswith("/attempt_0/0/stdout.log")
    (launcher,) = (process for process in processes if "torch.distributed.run" in process["command"])
    assert "RANK" not in launcher["environment"]
    assert launcher["descriptors"]["1"] == "/home/alice/run.out"


def test_a_container_has_podmans_group_and_its_log_has_the_lines_of_the_runtime_interface(
    containers: Containers, place: Path
) -> None:
    told = record_container(containers, place)
    (process,) = told["processes"]
    groups = {line.rpartition(":")[2] for line in process["cgroup"]}
    assert f"/libpod_parent/libpod-{CONTAINER}" in groups
    (line,) = told["output"]
    assert line.split(" ")[1:] == ["stdout", "F", "here", "1"]
    assert process["descriptors"]["1"].startswith("pipe:")


@pytest.mark.parametrize("name", PODS)
def test_a_pods_container_is_in_the_group_that_its_runtime_would_make(
    containers: Containers, place: Path, name: str
) -> None:
    scenario = PODS[name]
    told = record_pod(containers, place, scenario)
    (process,) = told["processes"]
    path = scenario.pod.group(CONTAINER, scenario.driver, scenario.runtime)
    assert {line.rpartition(":")[2] for line in process["cgroup"]} >= {path}
    assert told["log"] == f"/var/log/pods/{scenario.pod.namespace}_{scenario.pod.name}_{scenario.pod.uid}/main/0.log"
    assert not any((hierarchy.root / path.strip("/")).exists() for hierarchy in hierarchies()), "a group is left"
