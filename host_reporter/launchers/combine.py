"""One sighting out of what several launchers say of a process. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from host_reporter.launchers.cgroup_paths import pod_group
from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Sighting
from host_reporter.training.launch import find
from host_reporter.training.ranks import Ranks, find_ranks


def sighting_of(facts: ProcessFacts, launchers: Iterable[Launcher]) -> Sighting | None:
    """Returns as what a process was started; None: no launcher has started it, or none can be believed.

    The outermost launcher names the job, its hosts and its family, and a believed cgroup comes before all. The
    innermost one tells the rank. So with torchrun under Slurm the job is Slurm's, and the ranks are torchrun's. In a
    pod only its cgroup is believed: the users of all pods may have the same number.
    """
    ordered = sorted(launchers, key=lambda launcher: launcher.precedence)
    seen = [sighting for launcher in ordered if (sighting := launcher.see(facts)) is not None]
    seen.sort(key=lambda sighting: sighting.trust != "cgroup")
    named = next((sighting for sighting in seen if sighting.name is not None), None)
    if named is None:
        return None
    if named.trust != "cgroup" and (facts.user is None or pod_group(facts.cgroups) is not None):
        return None
    ranks = _ranks(facts.environment, seen)
    hosts = next((sighting.hosts for sighting in seen if sighting.hosts), ())
    return replace(
        named,
        rank=ranks.rank if ranks is not None else None,
        world_size=ranks.world_size if ranks is not None else None,
        local_rank=ranks.local_rank if ranks is not None else None,
        # A list without this host is of other names, or of another job.
        hosts=hosts if facts.host in hosts else (),
        family=next((sighting.family for sighting in seen if sighting.family), None),
        may_restart=any(sighting.may_restart for sighting in seen),
        helper=find(facts.environment, facts.host).job,
    )


def _ranks(environment: Mapping[str, str], seen: Iterable[Sighting]) -> Ranks | None:
    """Returns the ranks that are known of all launchers, else those that a launcher of another package tells."""
    # A batch script is no rank, though Slurm gives it one.
    is_step = "SLURM_STEP_ID" in environment
    told = {name: value for name, value in environment.items() if is_step or name != "SLURM_JOB_ID"}
    if (ranks := find_ranks(told)) is not None:
        return ranks
    for sighting in seen:
        if sighting.rank is not None:
            return Ranks(sighting.rank, sighting.world_size, sighting.local_rank)
    return None
