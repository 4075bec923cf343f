"""Hosts in groups by the jobs that they have, so that few rules say which pairs of hosts share a job. Pure.

All hosts with the same set of jobs are one group. Its *main* job is the one with most hosts. What a group says of a
destination is mostly what its main job alone says of it, so all groups with one main job share the rules for that. A
group has rules of its own, which go first, for the hosts of its other jobs alone. So a small job that begins on the
hosts of a large one makes rules for its own hosts, and not for each host of the large one.

Where hosts share many jobs with many others, there may be nearly as many groups as hosts. A group that would need many
rules for each of its hosts is therefore *crowded*. It has no rules of its own, so that a pair of hosts in it is never
taken for one that a job has alone. So the rules stay within a multiple of the jobs' hosts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

from controller.rules.metadata import GROUP, OF_ITS_OWN

RULES_A_HOST = 4
"""A group may need so many rules for each job of each of its hosts, before it is crowded."""

_REMEMBERED = 32768
_FIRST = 2
HostsByJob = Mapping[str, Sequence[str]]


class Group(NamedTuple):
    """The number of a group's main job, and that of the group among those with this main job; 0: it says no more."""

    main: int
    own: int = 0


NO_GROUP = Group(1)
"""Stands for all groups that are crowded, or that share no job with others."""


class SameJobs(NamedTuple):
    """Hosts that have the same jobs. ``job`` is their main job."""

    jobs: tuple[str, ...]
    hosts: tuple[str, ...]
    job: str


class Grouped(NamedTuple):
    """The group of some hosts. It is None where no rule for groups says anything of their pairs."""

    same: SameJobs
    group: Group | None

    @property
    def is_crowded(self) -> bool:
        """Whether these hosts would need too many rules."""
        return self.group is NO_GROUP


class Shared(NamedTuple):
    """Destinations of a group, each with the job that alone has such a pair of hosts (None: several jobs have it).

    ``hosts`` are those that may send. A group whose ``own`` is 0 stands for all groups with this main job.
    """

    group: Group
    hosts: frozenset[str]
    to: tuple[tuple[str, str | None], ...]
    job: str


def same_jobs(hosts_by_job: HostsByJob) -> list[SameJobs]:
    """Returns the hosts that have the same jobs together, sorted by these jobs."""
    on: dict[str, list[str]] = {}
    for job, names in sorted(hosts_by_job.items()):
        for name in names:
            on.setdefault(name, []).append(job)
    sets: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(on):
        sets.setdefault(tuple(on[name]), []).append(name)
    return [SameJobs(jobs, tuple(names), _main(jobs, hosts_by_job)) for jobs, names in sorted(sets.items())]


def grouped(
    sets: Iterable[SameJobs], hosts_by_job: HostsByJob, *, between_jobs: bool
) -> tuple[list[Grouped], list[Shared]]:
    """Returns the groups of all hosts, and with whom these share jobs.

    ``between_jobs``: there are rules for all pairs of hosts with jobs, so that pairs which several jobs have need none.
    """
    families: dict[str, list[SameJobs]] = {}
    for same in sets:
        families.setdefault(same.job, []).append(same)
    groups: list[Grouped] = []
    shared: list[Shared] = []
    taken: set[int] = set()
    for job, family in sorted(families.items()):
        fitting, crowded = _apart(job, family, hosts_by_job)
        groups += [Grouped(same, NO_GROUP) for same in crowded]
        found = _Family(job, fitting, hosts_by_job, between_jobs=between_jobs)
        if found.is_silent:
            groups += [Grouped(same, None) for same in fitting]
            continue
        main = _number((job,), taken, _FIRST, GROUP)
        groups += found.groups(main)
        shared += found.shared(main)
    return groups, shared


class _Family:
    """The groups that are not crowded and have the same main job."""

    def __init__(self, job: str, family: Sequence[SameJobs], hosts_by_job: HostsByJob, *, between_jobs: bool) -> None:
        self._job = job
        differing = {same: _differing(same, hosts_by_job) for same in family}
        left_out: dict[str, int] = {}
        for same, each in differing.items():
            # A host does not send to itself through the network.
            for name in each if len(same.hosts) > 1 else (*each, *same.hosts):
                left_out[name] = left_out.get(name, 0) + 1
        self._to = [name for name in hosts_by_job[job] if left_out.get(name, 0) < len(family)]
        by_main = frozenset(self._to) if any(differing.values()) else frozenset()
        numbers: set[int] = set()
        self._groups: list[tuple[SameJobs, int, list[tuple[str, str | None]]]] = []
        for same, each in differing.items():
            own = [item for item in each.items() if item[1] is not None or item[0] in by_main or not between_jobs]
            self._groups.append((same, _number(same.jobs, numbers, 1, OF_ITS_OWN) if own else 0, own))

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to say of these hosts' pairs."""
        return not self._to and not any(own for _, _, own in self._groups)

    def groups(self, main: int) -> Iterator[Grouped]:
        """Yields the hosts with their groups. ``main`` is the number of the main job."""
        for same, number, _ in self._groups:
            yield Grouped(same, Group(main, number))

    def shared(self, main: int) -> Iterator[Shared]:
        """Yields what the groups have in common, and what each says of its own."""
        if self._to:
            hosts = frozenset(chain.from_iterable(same.hosts for same, _, _ in self._groups))
            yield Shared(Group(main), hosts, tuple((name, self._job) for name in self._to), self._job)
        for same, number, own in self._groups:
            if own:
                yield Shared(Group(main, number), frozenset(same.hosts), tuple(own), self._job)


def _main(jobs: tuple[str, ...], hosts_by_job: HostsByJob) -> str:
    return min(jobs, key=lambda job: (-len(hosts_by_job[job]), job))


def _apart(
    job: str, family: Sequence[SameJobs], hosts_by_job: HostsByJob
) -> tuple[Sequence[SameJobs], Sequence[SameJobs]]:
    """Returns the groups with this main job that may have rules, and those that are crowded."""
    by_crowd: dict[bool, list[SameJobs]] = {True: [], False: []}
    for same in family:
        by_crowd[_is_crowded(same, hosts_by_job)].append(same)
    fitting = by_crowd[False]
    hosts = sum(len(same.hosts) for same in fitting)
    if len(hosts_by_job[job]) > RULES_A_HOST * hosts or len(fitting) > OF_ITS_OWN:
        return [], family
    return fitting, by_crowd[True]


def _is_crowded(same: SameJobs, hosts_by_job: HostsByJob) -> bool:
    """Returns whether a group would need many rules of its own for each of its hosts."""
    others = sum(len(hosts_by_job[job]) for job in same.jobs if job != same.job)
    return others > RULES_A_HOST * len(same.hosts) * (len(same.jobs) - 1)


def _differing(same: SameJobs, hosts_by_job: HostsByJob) -> dict[str, str | None]:
    """Returns the hosts of which a group does not say what its main job says, each with what it says."""
    if len(same.jobs) == 1:
        return {}
    shared: dict[str, str | None] = {}
    for job in same.jobs:
        for name in hosts_by_job[job]:
            shared[name] = None if name in shared else job
    if len(same.hosts) == 1:
        del shared[same.hosts[0]]
    return {name: alone for name, alone in sorted(shared.items()) if alone != same.job}


def _number(jobs: tuple[str, ...], taken: set[int], first: int, last: int) -> int:
    """Returns a number for some jobs that does not depend on others, unless two come to the same one."""
    number = first + _hash(jobs) % (last - first + 1)
    while number in taken:
        number = number + 1 if number < last else first
    taken.add(number)
    return number


@lru_cache(maxsize=_REMEMBERED)
def _hash(jobs: tuple[str, ...]) -> int:
    return int.from_bytes(blake2b("\0".join(jobs).encode(), digest_size=8).digest(), "big")
