"""What the launcher of a training has put into its environment: which job, which rank of how many, on which hosts.

torchrun (torch.distributed.elastic) sets TORCHELASTIC_RUN_ID, MASTER_ADDR, MASTER_PORT; Slurm sets SLURM_JOB_ID,
SLURM_JOB_NODELIST; PBS sets PBS_JOBID; LSF sets LSB_JOBID, LSB_JOBINDEX; Ray sets RAY_JOB_ID; PMIx (Open MPI) sets
PMIX_NAMESPACE. ``host_reporter.training.ranks`` knows who tells the rank: as when a batch script calls torchrun or
mpirun, ranks are the inner launcher's and hosts are Slurm's. Pure but for ``own_host``: an environment in, a value out;
nothing here raises.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from host_reporter.training.family import family_of_name
from host_reporter.training.nodelist import expand
from host_reporter.training.ranks import find_ranks, number

JOB_VARIABLE = "TRAINYARD_JOB"
"""The variable with which a user names the job; it wins over what launchers set."""

_NO_RUN = {"", "none"}
"""These are torchrun's run ids where the user gave none."""

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")
MAX_NAME = 63
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""The id of a job or host, as the controller takes it (controller.wire, which cannot be loaded everywhere)."""


@dataclass(frozen=True)
class Launch:
    """``job`` of None: nothing tells it. ``hosts``: those of the whole job as far as the environment tells them.

    ``may_restart``: the launcher may start the training again should it fail. ``name``: what the launcher calls the
    job, if that is the same at each launch (``host_reporter.training.family``).
    """

    job: str | None
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    hosts: tuple[str, ...] = ()
    may_restart: bool = False
    name: str | None = None


READ = frozenset(
    {
        JOB_VARIABLE, "TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID",
        "SLURM_JOB_NAME", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "WORLD_SIZE",
        "LOCAL_WORLD_SIZE", "PBS_JOBID", "PBS_JOBNAME", "LSB_JOBID", "LSB_JOBINDEX", "LSB_JOBNAME", "RAY_JOB_ID",
        "PMIX_NAMESPACE", "MASTER_ADDR", "MASTER_PORT",
    }
)  # fmt: skip
"""The names of all variables that are read here, beside those of the ranks."""


def find(environment: Mapping[str, str], host: str | None = None) -> Launch:
    """The launch of this environment; without a launcher a single process, rank 0 of 1.

    ``host`` is the name of this host; None: this machine's own name.
    """
    ranks = find_ranks(environment)
    return Launch(
        job=_job(environment, host),
        rank=ranks.rank if ranks is not None else 0,
        world_size=max((ranks.world_size if ranks is not None else None) or 1, 1),
        local_rank=(ranks.local_rank if ranks is not None else None) or 0,
        hosts=_hosts(environment, host),
        may_restart=may_restart(environment),
        name=_name(environment),
    )


def may_restart(environment: Mapping[str, str]) -> bool:
    """Returns whether torchrun may start the training again should it fail."""
    most = number(environment.get("TORCHELASTIC_MAX_RESTARTS")) or 0
    return most > (number(environment.get("TORCHELASTIC_RESTART_COUNT")) or 0)


def job_name(text: str) -> str | None:
    """A text as the id of a job: what an id cannot have becomes a dash; None where nothing is left."""
    name = _FOREIGN.sub("-", text).lstrip("._-")[:MAX_NAME]
    return name or None


def own_host() -> str:
    """This machine's name, as the agent takes it."""
    return os.uname().nodename.partition(".")[0]


def torchrun_run(environment: Mapping[str, str]) -> str | None:
    """Returns the id that a user has given to torchrun's run; None: there is none."""
    run = environment.get("TORCHELASTIC_RUN_ID", "")
    return None if run in _NO_RUN else run


def meeting_place(environment: Mapping[str, str], host: str | None = None) -> str | None:
    """Returns where the ranks meet, as ADDRESS-PORT of rank 0, which all ranks have in common; None: it is not told.

    A loopback address is that of another machine on each machine, so it becomes ``host``'s name.
    """
    address, port = environment.get("MASTER_ADDR"), environment.get("MASTER_PORT")
    if not address or number(port) is None:
        return None
    is_own = address in ("localhost", "::1", "0.0.0.0") or address.startswith("127.")  # noqa: S104 - compared alone
    return f"{host or own_host() if is_own else address}-{port}"


def lsf_job(environment: Mapping[str, str]) -> str | None:
    """Returns LSF's id of a job, and of an array's job its index too; None: LSF has not started it.

    Source: IBM Spectrum LSF, "Environment variables set for job execution" (LSB_JOBID, LSB_JOBINDEX).
    """
    job, index = environment.get("LSB_JOBID"), environment.get("LSB_JOBINDEX")
    return f"{job}-{index}" if job and index not in (None, "", "0") else job


def _job(environment: Mapping[str, str], host: str | None) -> str | None:
    """Returns the job: the user's name of it, else torchrun's, else that of the batch system, else the launcher's."""
    if name := environment.get(JOB_VARIABLE):
        return job_name(name)
    run = torchrun_run(environment)
    if run is not None and run != environment.get("SLURM_JOB_ID"):
        return job_name(run)
    known = {
        "slurm": environment.get("SLURM_JOB_ID"),
        "pbs": environment.get("PBS_JOBID"),
        "lsf": lsf_job(environment),
        "ray": environment.get("RAY_JOB_ID"),
        "mpi": environment.get("PMIX_NAMESPACE"),
        "torchrun": meeting_place(environment, host),
    }
    return next((job_name(f"{system}-{job}") for system, job in known.items() if job), None)


def _name(environment: Mapping[str, str]) -> str | None:
    """Returns the name by which runs of the same training are known: the batch system's, else that of torchrun."""
    names = (*map(environment.get, ("SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME")), torchrun_run(environment))
    return next((family for name in names if (family := family_of_name(name)) is not None), None)


def slurm_hosts(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the hosts of Slurm's step, else of its job, by their short names; empty: they are not told."""
    lists = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
    nodes = next((environment[name] for name in lists if environment.get(name)), None)
    try:
        return tuple(dict.fromkeys(name.partition(".")[0] for name in expand(nodes or "")))
    except ValueError:
        return ()


def _hosts(environment: Mapping[str, str], host: str | None) -> tuple[str, ...]:
    if any(environment.get(name) for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")):
        return slurm_hosts(environment)
    return (host or own_host(),) if all_here(environment) else ()


def all_here(environment: Mapping[str, str]) -> bool:
    """Returns whether torchrun has started all ranks on this host."""
    size = environment.get("WORLD_SIZE")
    return "RANK" in environment and size is not None and environment.get("LOCAL_WORLD_SIZE") == size
