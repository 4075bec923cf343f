"""The load of the agent's benches: jobs where the agent finds Slurm's."""

from __future__ import annotations

from evaluation.bench.hosts.agent_load import TASK
from host_reporter.launchers.cgroup_paths import slurm_group


def test_the_agent_takes_the_processes_for_a_jobs_of_slurm() -> None:
    group = slurm_group([f"/bench0_slurmstepd.scope/job_7/{TASK}"])
    assert group is not None
    assert group.job == "7"
    assert group.is_users
