"""Which rank each launcher tells: alone, inside one another, and in whatever helper or callback reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_reporter.training.ranks import READ, Ranks, find_ranks

WORKERS = {"worker": ["a:1", "b:1"], "ps": ["c:1"]}
CHIEF = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
SBATCH = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}


def tf(cluster: dict[str, list[str]], kind: str, index: int) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


SECOND = {
    "torchrun": {"TORCHELASTIC_RUN_ID": "x", "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"},
    "deepspeed": {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "CROSS_RANK": "0", "MASTER_ADDR": "h1"},
    "kubeflow": {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "x-master-0", "MASTER_PORT": "23456"},
    "ray train": {"RAY_JOB_ID": "01000000", "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"},
    "open mpi": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
    "pmix": {"PMIX_RANK": "1", "PMIX_NAMESPACE": "prterun-h1-9@1"},
    "mpich": {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1"},
    "intel mpi": {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "I_MPI_MPIRUN": "mpirun"},
    "mvapich2": {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "4", "MV2_COMM_WORLD_LOCAL_RANK": "1"},
    "mvapich": {"MVP_COMM_WORLD_RANK": "1", "MVP_COMM_WORLD_SIZE": "4", "MVP_COMM_WORLD_LOCAL_RANK": "1"},
    "pals": {"PALS_RANKID": "1", "PMI_SIZE": "4", "PALS_LOCAL_RANKID": "1", "PALS_APID": "9f"},
    "horovod": {"HOROVOD_RANK": "1", "HOROVOD_SIZE": "4", "HOROVOD_LOCAL_RANK": "1"},
    "slurm": SBATCH | {"SLURM_PROCID": "1", "SLURM_LOCALID": "1"},
    "tf_config": tf(WORKERS, "worker", 1),
}
"""The second process of a job of each launcher."""


@pytest.mark.parametrize("environment", SECOND.values(), ids=SECOND)
def test_each_launcher_tells_a_rank(environment: dict[str, str]) -> None:
    ranks = find_ranks(environment)
    assert ranks is not None and ranks.rank == 1
    assert ranks.world_size in (4, 3, None)


@pytest.mark.parametrize("environment", SECOND.values(), ids=SECOND)
def test_a_launcher_in_a_batch_script_of_slurms_knows_the_ranks(environment: dict[str, str]) -> None:
    """mpirun and torchrun start their processes with the batch script's SLURM_PROCID of 0."""
    ranks = find_ranks(SBATCH | environment)
    assert ranks is not None and ranks.rank == 1


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, None),
        (SBATCH, 0),
        ({"SLURM_PROCID": "3"}, None),
        # A daemon that srun has started on the second node, with the first ranks under it.
        (SBATCH | {"SLURM_PROCID": "1", "PMI_RANK": "0", "PMI_SIZE": "4"}, 0),
        (SBATCH | {"SLURM_PROCID": "1", "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}, 0),
        (SBATCH | SECOND["torchrun"] | {"SLURM_PROCID": "1", "RANK": "0"}, 0),
        # Raylets by srun: their workers are no tasks of Slurm's.
        (SBATCH | SECOND["ray train"] | {"SLURM_PROCID": "2", "RANK": "0"}, 0),
        (SBATCH | {"SLURM_PROCID": "2", "RAY_JOB_ID": "01000000"}, None),
        # Exported by the batch script, and the same in all tasks.
        (SBATCH | {"SLURM_PROCID": "2", "RANK": "0", "WORLD_SIZE": "4"}, 2),
        # Set by a task of srun's for each of the processes that it spawns.
        (SBATCH | {"SLURM_PROCID": "0", "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "3"}, 3),
        ({"RANK": "3"}, None),
        ({"RANK": "-1", "WORLD_SIZE": "4"}, None),
        ({"RANK": "9" * 40, "WORLD_SIZE": "4"}, None),
        (tf(WORKERS, "worker", 0), 0),
        (tf(WORKERS, "ps", 0), 2),
        (tf(CHIEF, "chief", 0), 0),
        (tf(CHIEF, "worker", 0), 1),
        (tf(CHIEF, "evaluator", 0), 3),
        (tf(CHIEF, "worker", 5), None),
        ({"TF_CONFIG": "{"}, None),
        ({"TF_CONFIG": '{"cluster": 3, "task": {}}'}, None),
        ({"TF_CONFIG": '{"cluster": {"worker": 3}, "task": {"type": "worker", "index": 0}}'}, None),
    ],
)
def test_who_knows_best(environment: dict[str, str], rank: int | None) -> None:
    ranks = find_ranks(environment)
    assert (None if ranks is None else ranks.rank) == rank


@given(st.dictionaries(st.sampled_from(sorted(READ)), st.text(max_size=12)))
def test_nonsense_raises_nothing(environment: dict[str, str]) -> None:
    ranks = find_ranks(environment)
    assert ranks is None or ranks.rank >= 0


SCRIPT = """
import sys
from host_reporter import ProgressFile, progress
from host_reporter.integrations.meter import Meter
for file in (progress("named"), progress(), ProgressFile("direct")):
    file.report(iteration=1, metric=0.5)
    file.end()
meter = Meter("met")
meter.step(1)
meter.end()
"""


def reported(folder: Path, environment: dict[str, str]) -> set[str]:
    """Returns the progress files that a process of this environment writes."""
    own = {name: value for name, value in os.environ.items() if name not in READ and not name.startswith("TRAINYARD")}
    own |= environment | {"TRAINYARD_PROGRESS_DIR": str(folder), "TRAINYARD_JOB": "mine"}
    subprocess.run([sys.executable, "-c", SCRIPT], env=own, check=True, timeout=60)
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.mark.parametrize("environment", SECOND.values(), ids=SECOND)
def test_another_rank_says_nothing_whichever_helper_it_uses(tmp_path: Path, environment: dict[str, str]) -> None:
    assert reported(tmp_path / "alone", environment) == set()


@pytest.mark.parametrize("launcher", ["torchrun", "open mpi", "slurm"])
def test_rank_0_reports_for_all(tmp_path: Path, launcher: str) -> None:
    first = {name: "0" if name.endswith(("RANK", "PROCID")) else value for name, value in SECOND[launcher].items()}
    assert reported(tmp_path / "first", first) == {"named.jsonl", "mine.jsonl", "direct.jsonl", "met.jsonl"}
    assert reported(tmp_path / "mpirun", SBATCH | first) == {"named.jsonl", "mine.jsonl", "direct.jsonl", "met.jsonl"}


def test_each_rank_of_a_tuner_reports_its_own_trials(tmp_path: Path) -> None:
    script = (
        "from host_reporter.integrations.trial_files import TrialFiles\n"
        "files = TrialFiles('study')\nfiles.begin('t1').report(iteration=1)\nfiles.end('t1')\n"
    )
    environment = os.environ | SECOND["open mpi"] | {"TRAINYARD_PROGRESS_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == ["study.t1.jsonl"]


def test_a_rank_is_a_value() -> None:
    assert find_ranks(SECOND["open mpi"]) == Ranks(1, 4, 1)
