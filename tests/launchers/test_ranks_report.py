"""Of the ranks that real launchers start only rank 0 reports, however a training calls the helper.

Under MPI each process was rank 0 of its own, and the first to end ended the job.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.launchers.jobs.reporting import RANKS
from tests.support.launchers.mpi import mpich, open_mpi
from tests.support.launchers.slurm.cluster import SlurmCluster
from tests.support.launchers.torchrun import torchrun
from tests.support.paths import ROOT, SUPPORT

PROGRAM = (sys.executable, str(SUPPORT / "launchers" / "jobs" / "reporting.py"))
NAMED = pytest.mark.parametrize("name", [(), ("ours",)], ids=["by the environment", "by a name"])


def reported(folder: Path) -> list[tuple[str, float | str]]:
    """What was written, file by file: iterations, and ``ended`` for the end."""
    lines = [
        (file.name, json.loads(line)) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()
    ]
    return [(name, "ended" if "ended" in record else record["iteration"]) for name, record in lines]


def run(command: list[str], folder: Path, **variables: str) -> list[tuple[str, float | str]]:
    """Run a launch to its end. Returns what its ranks reported."""
    done = subprocess.run(
        command,
        env=os.environ | {"TRAINYARD_PROGRESS_DIR": str(folder), "PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return reported(folder)


@NAMED
@pytest.mark.parametrize(
    ("make", "rank"), [(open_mpi, "OMPI_COMM_WORLD_RANK"), (mpich, "PMI_RANK")], ids=["Open MPI", "MPICH"]
)
def test_under_mpirun(mpi: None, tmp_path: Path, make: type, rank: str, name: tuple[str, ...]) -> None:
    told = run(make(RANKS, *PROGRAM, rank, *name), tmp_path, TRAINYARD_JOB="ours")
    assert told == [("ours.jsonl", 100.0), ("ours.jsonl", "ended")]


@NAMED
@pytest.mark.parametrize(
    ("start", "rank"),
    [
        ("srun", "SLURM_PROCID"),
        ("mpirun.openmpi --allow-run-as-root --oversubscribe", "OMPI_COMM_WORLD_RANK"),
        ("mpiexec.mpich", "PMI_RANK"),
    ],
)
def test_in_a_batch_job_of_slurms(
    slurm: SlurmCluster, mpi: None, tmp_path: Path, start: str, rank: str, name: tuple[str, ...]
) -> None:
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/bash\n{' '.join((start, *PROGRAM, rank, *name))}\n")
    job = slurm.submit(script, "--nodes=2", f"--ntasks={RANKS}", "--output=out", folder=tmp_path, PYTHONPATH=str(ROOT))
    slurm.wait(job)
    file = slurm.progress / f"{name[0] if name else f'slurm-{job}'}.jsonl"
    told = [line for line in reported(slurm.progress) if line[0] == file.name]
    file.unlink(missing_ok=True)
    assert told == [(file.name, 100.0), (file.name, "ended")], (tmp_path / "out").read_text()


@NAMED
def test_under_torchrun(torch: None, tmp_path: Path, name: tuple[str, ...]) -> None:
    options = ("--rdzv-id=ours", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:29517", "--nnodes=1")
    told = run(torchrun(RANKS, *PROGRAM, "RANK", *name, options=options), tmp_path)
    assert told == [("ours.jsonl", 100.0), ("ours.jsonl", "ended")]
