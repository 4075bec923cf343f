"""What the launcher of a training has put into its environment: which job, which rank of how many, on which hosts.

torchrun (torch.distributed.elastic) sets TORCHELASTIC_RUN_ID, RANK, WORLD_SIZE, MASTER_ADDR; Slurm sets SLURM_JOB_ID,
SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_NODELIST. Under both, as when a batch script calls torchrun, ranks are torchrun's
and hosts are Slurm's. Pure but for ``own_host``: an environment in, a value out; nothing here raises.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from host_reporter.training.family import family_of_name
from host_reporter.training.nodelist import expand

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


def find(environment: Mapping[str, str]) -> Launch:
    """The launch of this environment; without a launcher a single process, rank 0 of 1."""
    by_torch = "RANK" in environment and "WORLD_SIZE" in environment
    by_slurm = "SLURM_JOB_ID" in environment
    if by_torch:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    elif by_slurm and "SLURM_PROCID" in environment:
        names = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID")
    else:
        # In a batch script, outside of srun, there is one process, and it may speak for the job.
        names = ("", "", "")
    return Launch(
        job=_job(environment),
        rank=_number(environment, names[0], 0),
        world_size=max(_number(environment, names[1], 1), 1),
        local_rank=_number(environment, names[2], 0),
        hosts=_hosts(environment, by_torch=by_torch),
        may_restart=_number(environment, "TORCHELASTIC_MAX_RESTARTS", 0)
        > _number(environment, "TORCHELASTIC_RESTART_COUNT", 0),
        name=_name(environment),
    )


def job_name(text: str) -> str | None:
    """A text as the id of a job: what an id cannot have becomes a dash; None where nothing is left."""
    name = _FOREIGN.sub("-", text).lstrip("._-")[:MAX_NAME]
    return name or None


def own_host() -> str:
    """This machine's name, as the agent takes it."""
    return os.uname().nodename.partition(".")[0]


def _job(environment: Mapping[str, str]) -> str | None:
    if name := environment.get(JOB_VARIABLE):
        return job_name(name)
    run = environment.get("TORCHELASTIC_RUN_ID", "")
    if run not in _NO_RUN and run != environment.get("SLURM_JOB_ID"):
        return job_name(run)
    if number := environment.get("SLURM_JOB_ID"):
        return job_name(f"slurm-{number}")
    return None


def _name(environment: Mapping[str, str]) -> str | None:
    """Returns the name by which runs of the same training are known: Slurm's, else that of torchrun's run."""
    run = environment.get("TORCHELASTIC_RUN_ID", "")
    names = (environment.get("SLURM_JOB_NAME"), run if run not in _NO_RUN else None)
    return next((family for name in names if (family := family_of_name(name)) is not None), None)


def _hosts(environment: Mapping[str, str], *, by_torch: bool) -> tuple[str, ...]:
    lists = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
    if nodes := next((environment[name] for name in lists if environment.get(name)), None):
        try:
            return tuple(dict.fromkeys(name.partition(".")[0] for name in expand(nodes)))
        except ValueError:
            return ()
    size = environment.get("WORLD_SIZE")
    if by_torch and size is not None and environment.get("LOCAL_WORLD_SIZE") == size:
        return (own_host(),)
    return ()


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
