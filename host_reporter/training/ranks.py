"""Which rank a process is, by the variables of whatever has started it. Pure; it imports next to nothing.

Several launchers may speak at once: under ``sbatch`` a batch script calls ``mpirun`` or ``torchrun``. The innermost one
knows the ranks. The order, from the innermost to the outermost:

1. torchrun, and Ray Train, which set RANK and WORLD_SIZE beside TORCHELASTIC_RUN_ID or RAY_JOB_ID
   (https://docs.pytorch.org/docs/stable/elastic/run.html, https://docs.ray.io/en/latest/train/train.html);
2. RANK and WORLD_SIZE of DeepSpeed's launcher, Kubeflow's operators, or a script, where RANK is not 0;
3. Horovod's Gloo launcher (https://horovod.readthedocs.io), Open MPI
   (https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html), MVAPICH (its user guide), PALS
   (https://docs.alcf.anl.gov/polaris/running-jobs/), MPICH's Hydra and Intel MPI (PMI_RANK), PMIx (PMIX_RANK);
4. TF_CONFIG (https://www.tensorflow.org/guide/distributed_training);
5. Slurm (https://slurm.schedmd.com/srun.html), whose SLURM_PROCID is that of a daemon where mpirun starts by srun;
6. RANK of 0, which a batch script may have exported to all its ranks, so that it counts only where nobody else speaks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Ranks(NamedTuple):
    """The rank of a process in its job. ``world_size`` and ``local_rank`` of None: they are not told."""

    rank: int
    world_size: int | None
    local_rank: int | None


class Variables(NamedTuple):
    """The names of a launcher's variables: of the rank, the world size and the local rank; empty: it sets none."""

    rank: str
    world_size: str = ""
    local_rank: str = ""


TORCH = Variables("RANK", "WORLD_SIZE", "LOCAL_RANK")
"""The variables of torch.distributed's environment, which many launchers set."""

HOROVOD = Variables("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK")
OPEN_MPI = Variables("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")
MVAPICH2 = Variables("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK")
MVAPICH = Variables("MVP_COMM_WORLD_RANK", "MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_LOCAL_RANK")
PALS = Variables("PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID")
HYDRA = Variables("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID")
PMIX = Variables("PMIX_RANK")
SLURM = Variables("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID")

_MPI = (HOROVOD, OPEN_MPI, MVAPICH2, MVAPICH, PALS, HYDRA, PMIX)
_NESTED = ("TORCHELASTIC_RUN_ID", "RAY_JOB_ID")
"""Their processes inherit other launchers' variables from a daemon, which say nothing of the process itself."""

TF_CONFIG = "TF_CONFIG"
READ = frozenset(
    {name for variables in (TORCH, *_MPI, SLURM) for name in variables if name} | {TF_CONFIG, *_NESTED, "SLURM_JOB_ID"}
)
"""The names of all variables that are read here."""

_MOST_DIGITS = 9


def find_ranks(environment: Mapping[str, str]) -> Ranks | None:
    """Returns the rank that the environment of a process tells; None: no launcher tells one."""
    torch = told_by(TORCH, environment) if "WORLD_SIZE" in environment else None
    if any(name in environment for name in _NESTED):
        return torch
    if torch is not None and torch.rank:
        return torch
    others = (told_by(variables, environment) for variables in _MPI)
    inner = next((ranks for ranks in others if ranks is not None), None) or tf_ranks(environment)
    if inner is None and "SLURM_JOB_ID" in environment:
        inner = told_by(SLURM, environment)
    return inner or torch


def told_by(variables: Variables, environment: Mapping[str, str]) -> Ranks | None:
    """Returns the rank that one launcher's variables tell; None: they tell none."""
    rank = number(environment.get(variables.rank))
    if rank is None:
        return None
    return Ranks(rank, number(environment.get(variables.world_size)), number(environment.get(variables.local_rank)))


def number(text: str | None) -> int | None:
    """Returns a count that a launcher has written; None where the text is no count."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        return None
    return int(text)


def tf_ranks(environment: Mapping[str, str]) -> Ranks | None:
    """Returns the rank that TF_CONFIG tells: the chief (or worker 0) is 0, then come workers and parameter servers.

    An evaluator is not in the cluster. It gets the rank after the last, since it does not speak for the job.
    """
    config = tf_config(environment)
    if config is None:
        return None
    cluster, task = config
    counts = {kind: len(cluster[kind]) for kind in ("chief", "master", "worker", "ps") if kind in cluster}
    size = sum(counts.values())
    kind, index = task.get("type"), task.get("index")
    if kind not in counts or not isinstance(index, int) or not 0 <= index < counts[kind]:
        return Ranks(size, size, None) if kind == "evaluator" else None
    return Ranks(sum(counts[before] for before in list(counts)[: list(counts).index(kind)]) + index, size, None)


def tf_config(environment: Mapping[str, str]) -> tuple[dict[str, list[str]], dict[str, Any]] | None:
    """Returns the cluster (addresses by kind of task) and the task of TF_CONFIG; None where it has none."""
    try:
        config = json.loads(environment[TF_CONFIG])
        cluster, task = config["cluster"], config["task"]
        addresses = {str(kind): [str(address) for address in listed] for kind, listed in cluster.items()}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return (addresses, task) if isinstance(task, dict) else None
