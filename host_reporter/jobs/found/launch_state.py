"""One found job over time: from its first process to its last, over restarts. Pure but for the processes themselves."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.wire.parts import PartSpec
from host_reporter.jobs.found.group import Group
from host_reporter.jobs.found.job import FoundJob
from host_reporter.procfs import Process
from host_reporter.readers.location import Location


@dataclass
class LaunchState:
    """What is remembered of a job. Times are of a monotonic clock.

    While its processes end one after the other, it keeps the most ranks that it had here, and that rank 0 was here. Of
    ranks that were started again all is new. ``told`` is what was reported; None: nothing yet. ``is_news``: something
    may be otherwise since. ``search_seconds``: how long after ``searched_at`` its output is looked for again.
    ``looked_below_at``: when it was looked for below the working folder.
    """

    group: Group
    since: float
    last_seen: float
    location: Location | None = None
    searched_at: float = float("-inf")
    search_seconds: float = 0.0
    looked_below_at: float = float("-inf")
    is_news: bool = True
    told: FoundJob | None = None
    told_at: float = float("-inf")
    ranks: frozenset[int] = frozenset()
    world_size: int | None = None
    is_first: bool = False
    _ranked: frozenset[Process] = field(default=frozenset())

    def update(self, group: Group, now: float) -> None:
        """Note the job's processes of now."""
        self.group, self.last_seen, self.is_news = group, now, True
        ranked = frozenset(seen.process for seen in group.ranked)
        if ranked and ranked.isdisjoint(self._ranked):
            self.ranks, self.world_size, self.is_first = frozenset(), None, False
            self.location, self.search_seconds = None, 0.0
        self._ranked = ranked or self._ranked
        told = {rank for seen in group.ranked if (rank := seen.sighting.rank) is not None}
        self.ranks |= told
        self.world_size = group.world_size or self.world_size
        self.is_first |= 0 in told

    @property
    def is_by_helper(self) -> bool:
        """Whether the two-line helper writes its progress."""
        return self.location is not None and not self.location.follow_links and self.location.kind == "jsonl"

    @property
    def reads_output(self) -> bool:
        """Whether the job's progress is read on this host: rank 0 is here, or nothing here knows the ranks."""
        return self.is_first or not self.ranks


def part_of(state: LaunchState, user: str | None, arrival: float) -> PartSpec:
    """Returns what is registered of a job. ``user`` is whose job it is, ``arrival`` in seconds since the epoch."""
    group = state.group
    family = group.told(lambda sighting: sighting.family)
    description = group.told(lambda sighting: sighting.description)
    return PartSpec(
        launcher=group.sighting.launcher,
        user=group.sighting.user or user,
        family=family,
        model=f"{family} {description}"[:127] if family is not None and description is not None else None,
        world_size=state.world_size or None,
        ranks=len(state.ranks) or None,
        is_first=state.is_first,
        hosts=group.hosts,
        arrival=arrival,
    )
