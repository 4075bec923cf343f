"""What Slurm really gives the processes of a job: variables, cgroups, and where their output leads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.launchers.machine.cgroups import is_version_2
from tests.support.launchers.machine.users import somebody
from tests.support.launchers.recording.launch import Launch
from tests.support.launchers.recording.scenarios import SLURM, Batch, Direct
from tests.support.launchers.slurm.cluster import SlurmCluster

Process = dict[str, Any]


def launched(slurm: SlurmCluster, name: str) -> list[Process]:
    """The processes of a launch, as a recording has them."""
    scenario = SLURM[name]
    launch = Launch(slurm.folder, somebody(), {})
    if isinstance(scenario, Direct):
        return list(launch.record_direct(scenario, slurm)["processes"])
    assert isinstance(scenario, Batch)
    return list(launch.record_batch(slurm, scenario)["processes"])


def ranks(processes: list[Process]) -> dict[int, Process]:
    """The ranks by what their launcher's labels say."""
    return {process["rank"]: process for process in processes if process["rank"] is not None}


def trainings(processes: list[Process]) -> list[Process]:
    """The ranks, with or without labels."""
    return [process for process in processes if process["command"][-1] == "/home/alice/release"
            and process["command"][0].startswith("/usr/bin/python")]  # fmt: skip


def group(process: Process) -> tuple[str, str]:
    """The node's part of a process's cgroup, and from the job on."""
    for line in process["cgroup"]:
        if found := re.search(r"[:/](?:slurm_)?(gpu\d+)(?:_slurmstepd\.scope)?(?:/uid_1000)?/(job_\d+/.*)$", line):
            return found[1], found[2]
    raise AssertionError(process["cgroup"])


def output(process: Process) -> str:
    return str(process["descriptors"]["1"])


def test_a_batch_script_is_one_process_that_writes_to_the_jobs_file(slurm: SlurmCluster) -> None:
    (rank,) = trainings(launched(slurm, "slurm-batch"))
    environment = rank["environment"]
    job = environment["SLURM_JOB_ID"]
    assert (rank["uid"], environment["SLURM_JOB_NAME"], environment["SLURM_PROCID"]) == (1000, "resnet50", "0")
    assert output(rank) == rank["descriptors"]["2"] == f"/home/alice/slurm-{job}.out"
    assert group(rank) == ("gpu01", f"job_{job}/step_batch" + ("/user/task_0" if is_version_2() else ""))


def test_ranks_of_srun_have_their_rank_and_pipes_and_the_script_has_the_file(slurm: SlurmCluster) -> None:
    processes = launched(slurm, "slurm-srun")
    found = ranks(processes)
    assert {rank: process["environment"]["SLURM_PROCID"] for rank, process in found.items()} == {0: "0", 1: "1", 2: "2"}
    assert {process["environment"]["SLURM_NTASKS"] for process in found.values()} == {"3"}
    assert [group(found[rank])[0] for rank in (0, 1, 2)] == ["gpu01", "gpu01", "gpu02"]
    assert all(output(process).startswith("pipe:") for process in found.values())
    (script,) = (process for process in processes if process["command"][-1].endswith("slurm_script"))
    assert output(script) == f"/home/alice/slurm-{script['environment']['SLURM_JOB_ID']}.out"
    assert "step_batch" in group(script)[1]


def test_a_step_with_files_of_its_own_has_them_as_its_output(slurm: SlurmCluster) -> None:
    found = {process["environment"]["SLURM_PROCID"]: output(process)
             for process in trainings(launched(slurm, "slurm-srun-output"))}  # fmt: skip
    assert found == {str(rank): f"/home/alice/step-{rank}.out" for rank in range(3)}


def test_one_file_for_a_step_is_open_in_srun_alone(slurm: SlurmCluster) -> None:
    processes = launched(slurm, "slurm-srun-file")
    assert set(ranks(processes)) == {0, 1, 2}
    holders = [process for process in processes if "/home/alice/step.out" in process["descriptors"].values()]
    assert {process["command"][0] for process in holders} == {"srun"}
    assert not any(output(process) == "/home/alice/step.out" for process in processes)


def test_tasks_of_an_array_are_jobs_of_their_own(slurm: SlurmCluster) -> None:
    found = {
        process["environment"]["SLURM_ARRAY_TASK_ID"]: process for process in trainings(launched(slurm, "slurm-array"))
    }
    assert set(found) == {"4", "5"}
    assert len({process["environment"]["SLURM_JOB_ID"] for process in found.values()}) == 2
    assert len({process["environment"]["SLURM_ARRAY_JOB_ID"] for process in found.values()}) == 1
    for process in found.values():
        assert group(process)[1].startswith(f"job_{process['environment']['SLURM_JOB_ID']}/")


def test_the_parts_of_a_heterogeneous_job_have_one_number_in_their_environment_and_two_in_their_groups(
    slurm: SlurmCluster,
) -> None:
    found = ranks(launched(slurm, "slurm-het"))
    assert {rank: process["environment"]["SLURM_PROCID"] for rank, process in found.items()} == {0: "0", 1: "1", 2: "2"}
    (job,) = {process["environment"]["SLURM_JOB_ID"] for process in found.values()}
    other = found[0]["environment"]["SLURM_JOB_ID_HET_GROUP_1"]
    assert [group(found[rank])[1].partition("/")[0] for rank in (0, 1, 2)] == [f"job_{job}", *[f"job_{other}"] * 2]


@pytest.mark.parametrize(
    ("name", "rank", "size"),
    [("slurm-open-mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("slurm-mpich", "PMI_RANK", "PMI_SIZE")],
)
def test_under_mpirun_slurms_rank_is_that_of_mpiruns_daemon(
    slurm: SlurmCluster, mpi: None, name: str, rank: str, size: str
) -> None:
    found = ranks(launched(slurm, name))
    assert {
        number: (process["environment"][rank], process["environment"][size]) for number, process in found.items()
    } == {number: (str(number), "3") for number in range(3)}
    assert [found[number]["environment"]["SLURM_PROCID"] for number in range(3)] == ["0", "0", "1"]
    assert [group(found[number])[0] for number in range(3)] == ["gpu01", "gpu01", "gpu02"]
    assert not any(output(process).startswith("/home") for process in found.values())


def test_srun_from_a_shell_writes_to_the_shells_file(slurm: SlurmCluster) -> None:
    processes = launched(slurm, "slurm-direct")
    assert set(ranks(processes)) == {0, 1, 2}
    launchers = [process for process in processes if process["command"][0] == "srun"]
    assert {output(process) for process in launchers} == {"/home/alice/run.out"}
    assert not any("job_" in line for process in launchers for line in process["cgroup"])


def test_each_job_is_forgotten_when_it_has_ended(slurm: SlurmCluster) -> None:
    home = somebody().folder(slurm.folder / "short")
    script = home / "job.sh"
    script.write_text("#!/bin/sh\necho done\n")
    job = slurm.submit(script, "--output=out", user=somebody(), folder=home)
    slurm.wait(job)
    assert (home / "out").read_text() == "done\n"
    assert not list(Path("/sys/fs/cgroup").glob(f"**/*{slurm.nodes[0]}*/**/job_{job}"))
