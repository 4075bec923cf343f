"""The launches that are recorded: what is started how, and how many of its processes say that they are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.launchers.mpi import mpich, open_mpi
from tests.support.launchers.torchrun import torchrun

Program = tuple[str, ...]


@dataclass(frozen=True)
class Batch:
    """A batch script of Slurm's. ``body``: from the command of one rank to the script's lines.

    ``options``: of sbatch, those of a heterogeneous job with ``:`` between its parts.
    """

    about: str
    body: Callable[[str], str]
    ranks: int
    options: tuple[str, ...] = ("--nodes=2", "--ntasks=3")


@dataclass(frozen=True)
class Direct:
    """A command that starts the ranks from a shell, its output in a file."""

    about: str
    command: Callable[[Program], list[str]]
    ranks: int
    needs_slurm: bool = False


SLURM: dict[str, Batch | Direct] = {
    "slurm-batch": Batch(
        "A batch script that starts one program itself, without srun.", lambda rank: rank, 1, ("--job-name=resnet50",)
    ),
    "slurm-srun": Batch("srun in a batch script: 3 tasks on 2 nodes.", lambda rank: f"srun --label {rank}", 3),
    "slurm-srun-output": Batch(
        "As slurm-srun, with files of the step's own.", lambda rank: f"srun --output=step-%t.out {rank}", 3
    ),
    "slurm-srun-file": Batch(
        "As slurm-srun, with one file for the whole step: srun itself has it open.",
        lambda rank: f"srun --label --output=step.out {rank}",
        3,
    ),
    "slurm-pmi2": Batch("srun --mpi=pmi2 in a batch script.", lambda rank: f"srun --mpi=pmi2 --label {rank}", 3),
    "slurm-array": Batch(
        "An array of two tasks, whose script starts one program each.",
        lambda rank: rank,
        2,
        ("--array=4-5", "--job-name=sweep"),
    ),
    "slurm-het": Batch(
        "A heterogeneous job of two parts, one step over both.",
        lambda rank: f"srun --label --het-group=0,1 {rank}",
        3,
        ("--ntasks=1", ":", "--ntasks=2"),
    ),
    "slurm-open-mpi": Batch(
        "Open MPI's mpirun in a batch script: it starts its daemons by srun, and they start the ranks.",
        lambda rank: " ".join(open_mpi(None, rank)),
        3,
    ),
    "slurm-mpich": Batch("MPICH's mpiexec in a batch script.", lambda rank: " ".join(mpich(None, rank)), 3),
    "slurm-direct": Direct(
        "srun from a shell on the login node.",
        lambda rank: ["srun", "--label", "--nodes=2", "--ntasks=3", *rank],
        3,
        needs_slurm=True,
    ),
}

_JOINED = "--nnodes=2 --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:29511"
"""How the torchruns of two nodes meet; they are on one machine here."""

SLURM["slurm-torchrun"] = Batch(
    "torchrun on each of two nodes by srun, two ranks a node; labels have the global rank.",
    lambda rank: (
        f"srun --ntasks-per-node=1 {' '.join(torchrun(2, *rank.split(), options=('--tee=3', *_JOINED.split())))}"
    ),
    4,
    ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=4"),
)

TORCH: dict[str, Batch | Direct] = {
    "torchrun": Direct(
        "torchrun on one host: ranks have torchrun's own descriptors, without labels.",
        lambda rank: torchrun(2, *rank, options=("--standalone", "--rdzv-id=resnet50")),
        2,
    ),
    "torchrun-tee": Direct(
        "torchrun --tee 3: its own log files and labels.",
        lambda rank: torchrun(2, *rank, options=("--standalone", "--tee=3")),
        2,
    ),
}

MPI: dict[str, Batch | Direct] = {
    "open-mpi": Direct("Open MPI's mpirun on one host.", lambda rank: open_mpi(3, *rank), 3),
    "mpich": Direct("MPICH's mpiexec on one host.", lambda rank: mpich(3, *rank), 3),
}
