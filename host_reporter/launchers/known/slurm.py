"""Slurm: sbatch, salloc and srun, also arrays and heterogeneous jobs."""

from __future__ import annotations

from dataclasses import replace

from host_reporter.launchers.cgroup_paths import slurm_group
from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.family import family_of_name
from host_reporter.training.nodelist import expand
from host_reporter.training.ranks import SLURM, number

_LEADER = "SLURM_JOB_ID_HET_GROUP_0"


class Slurm(Launcher):
    """A job of Slurm's. Its cgroup is believed; without cgroups the job is known by the environment alone.

    Variables: SLURM_JOB_ID, SLURM_JOB_NAME, SLURM_JOB_NODELIST, SLURM_ARRAY_JOB_ID, SLURM_ARRAY_TASK_ID
    (https://slurm.schedmd.com/sbatch.html), SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_STEP_ID
    (https://slurm.schedmd.com/srun.html), SLURM_HET_SIZE, SLURM_JOB_ID_HET_GROUP_0
    (https://slurm.schedmd.com/heterogeneous_jobs.html). The components of a heterogeneous job have an id each, and only
    the environment tells that they are one job, so that job belongs to its user.
    """

    name = "slurm"
    precedence = Precedence.BATCH
    reads = frozenset(
        {
            "SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
            "SLURM_STEP_ID", "SLURM_HET_SIZE", _LEADER, *SLURM,
        }
    )  # fmt: skip

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the job. Slurm's own daemon, and the external step, where logins are put, are none."""
        group, environment = slurm_group(facts.cgroups), facts.environment
        job = group.job if group is not None else environment.get("SLURM_JOB_ID")
        if not job or (group is not None and not group.is_users):
            return None
        family = family_of_name(environment.get("SLURM_JOB_NAME"))
        # The batch script is no rank: it has SLURM_PROCID 0 on whichever host it runs.
        told = (SLURM,) if "SLURM_STEP_ID" in environment else ()
        if (number(environment.get("SLURM_HET_SIZE")) or 0) > 1 and (leader := environment.get(_LEADER)):
            return self.by_environment(facts, leader, family=family)
        seen = self.by_environment(
            facts, job, *told, hosts=_hosts(environment.get("SLURM_JOB_NODELIST")), family=family,
            description=_task(facts) if family is not None else None,
        )  # fmt: skip
        return seen if group is None else replace(seen, trust="cgroup", group=group.path)


def _task(facts: ProcessFacts) -> str | None:
    """Returns the name of a task of an array, as squeue shows it: 120_4."""
    array, task = (facts.environment.get(f"SLURM_ARRAY_{name}_ID") for name in ("JOB", "TASK"))
    return f"{array}_{task}" if number(array) is not None and number(task) is not None else None


def _hosts(nodes: str | None) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(name.partition(".")[0] for name in expand(nodes or "")))
    except ValueError:
        return ()
