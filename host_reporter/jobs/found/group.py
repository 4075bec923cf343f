"""The processes of one job on this host, and what they say of it together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from host_reporter.jobs.found.ids import job_id
from host_reporter.jobs.job import JobProcesses
from host_reporter.launchers.launcher import Sighting
from host_reporter.launchers.processes import Seen
from host_reporter.procfs import PROC, Process


@dataclass(frozen=True)
class Group:
    """The processes of a job, the oldest first. ``user``: the number of their user; None: of several."""

    id: str
    user: int | None
    members: tuple[Seen, ...]

    @property
    def sighting(self) -> Sighting:
        """What the oldest process says of the job itself, such as its launcher."""
        return self.members[0].sighting

    @property
    def world_size(self) -> int | None:
        """The processes of the whole job: the most that a launcher tells, which is the innermost one."""
        return max((size for seen in self.members if (size := seen.sighting.world_size) is not None), default=None)

    @property
    def ranked(self) -> tuple[Seen, ...]:
        """The processes with a rank of the innermost launcher, the oldest first.

        A process of torchrun's itself may have a rank of Slurm's, in a smaller world.
        """
        size = self.world_size
        return tuple(
            seen for seen in self.members if seen.sighting.rank is not None and seen.sighting.world_size == size
        )

    @property
    def first(self) -> tuple[Seen, ...]:
        """The processes that are rank 0, the oldest first: it, and what it has started."""
        return tuple(seen for seen in self.ranked if seen.sighting.rank == 0)

    @property
    def unranked(self) -> tuple[Seen, ...]:
        """The processes that have no rank, such as a batch script, the oldest first."""
        return tuple(seen for seen in self.members if seen.sighting.rank is None)

    @property
    def processes(self) -> JobProcesses:
        """Where the job's processes are: in their believed cgroup, where they have one in common, else below these."""
        groups = {seen.sighting.group for seen in self.members}
        if len(groups) == 1 and (path := next(iter(groups))) is not None:
            return JobProcesses(Path(PROC), cgroup=path)
        return JobProcesses(Path(PROC), roots=self.roots)

    @property
    def roots(self) -> frozenset[Process]:
        """The processes whose parents are not of the job."""
        pids = {seen.process.pid for seen in self.members}
        return frozenset(seen.process for seen in self.members if seen.parent not in pids)

    def told(self, field: Callable[[Sighting], str | None]) -> str | None:
        """Returns what the oldest process that tells it tells of the job."""
        return next((text for seen in self.members if (text := field(seen.sighting)) is not None), None)

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts of the job; empty: they are not told."""
        return next((seen.sighting.hosts for seen in self.members if seen.sighting.hosts), ())

    @property
    def may_restart(self) -> bool:
        """Whether the launcher may start the processes again."""
        return any(seen.sighting.may_restart for seen in self.members)


def groups_of(seen: Iterable[Seen], name_of: Callable[[int], str | None]) -> dict[str, Group]:
    """Returns the jobs of these processes by their ids. ``name_of`` returns the name of a user's number."""
    members: dict[str, list[Seen]] = {}
    for each in seen:
        if (job := job_id(each.sighting, each.user, name_of)) is not None:
            members.setdefault(job, []).append(each)
    return {job: _group(job, listed) for job, listed in members.items()}


def _group(job: str, members: list[Seen]) -> Group:
    ordered = tuple(sorted(members, key=lambda seen: (seen.process.started, seen.process.pid)))
    # In a believed cgroup root's own helpers run beside the user's processes.
    known = {seen.user for seen in ordered if seen.user is not None}
    users = (known - {0}) or known
    return Group(job, next(iter(users)) if len(users) == 1 else None, ordered)
