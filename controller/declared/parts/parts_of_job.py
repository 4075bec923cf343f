"""All parts of one job, by host. What is asked at each change costs little, however many hosts the job has."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from controller.declared.parts.host_part import HostPart

Hosts = frozenset[str]
NO_HOSTS: Hosts = frozenset()


class HostLists:
    """The different lists of hosts that the parts of a job tell. Equal lists are one object, which is kept once."""

    def __init__(self) -> None:
        self._uses: dict[Hosts, int] = {}
        self._same: dict[Hosts, Hosts] = {}
        self._names: dict[Hosts, str] = {}

    def __len__(self) -> int:
        return len(self._uses)

    def __iter__(self) -> Iterator[Hosts]:
        return iter(self._uses)

    def uses(self, hosts: Hosts) -> int:
        """Returns how many parts tell this list."""
        return self._uses.get(hosts, 0)

    def add(self, hosts: Hosts) -> Hosts:
        """Note that a part tells a list; returns the one object for all equal lists."""
        if not hosts:
            return hosts
        same = self._same.setdefault(hosts, hosts)
        self._uses[same] = self._uses.get(same, 0) + 1
        return same

    def remove(self, hosts: Hosts) -> None:
        """Note that a part tells a list no more."""
        if not hosts:
            return
        self._uses[hosts] -= 1
        if not self._uses[hosts]:
            del self._uses[hosts], self._same[hosts]
            self._names.pop(hosts, None)

    def name(self, hosts: Hosts) -> str | None:
        """Returns a short name that a list has in the journal; None for an empty list."""
        if not hosts:
            return None
        name = self._names.get(hosts)
        if name is None:
            name = hashlib.blake2b(" ".join(sorted(hosts)).encode(), digest_size=16).hexdigest()
            if hosts in self._uses:
                self._names[hosts] = name
        return name


class PartsOfJob:
    """The parts of one job. Those that were removed are remembered, but are no parts of the job any more."""

    def __init__(self, parts: Iterable[HostPart] = ()) -> None:
        self._by_host: dict[str, HostPart] = {}
        self._present: list[str] = []
        """The hosts whose parts were not removed, in order."""
        self._running: set[str] = set()
        self._first: str | None = None
        self.lists = HostLists()
        for part in parts:
            self.put(part)

    def __len__(self) -> int:
        return len(self._present)

    def __iter__(self) -> Iterator[HostPart]:
        """The parts of the job, those that have ended included, by host."""
        return map(self._by_host.__getitem__, self._present)

    @property
    def remembered(self) -> Mapping[str, HostPart]:
        """All parts by host, those that were removed included."""
        return self._by_host

    def get(self, host: str) -> HostPart | None:
        """Returns the part of a host, also one that was removed; None where there was none."""
        return self._by_host.get(host)

    def has(self, host: str) -> bool:
        """Returns whether the host has a part that was not removed."""
        part = self._by_host.get(host)
        return part is not None and part.over != "removed"

    @property
    def running(self) -> frozenset[str]:
        """The hosts where the job runs."""
        return frozenset(self._running)

    @property
    def is_over(self) -> bool:
        """Whether the job runs nowhere any more."""
        return not self._running

    @property
    def over_at(self) -> float:
        """When the last of the parts was over, by the controller's clock."""
        return max((part.over_at for part in self._by_host.values() if part.over_at is not None), default=0.0)

    @property
    def first(self) -> HostPart | None:
        """The part of the host that rank 0 runs on; None: no part says so."""
        return None if self._first is None else self._by_host[self._first]

    @property
    def leading(self) -> HostPart | None:
        """The part whose word counts before that of the others: the first part, else that of the first host."""
        return self.first if self._first is not None else next(iter(self), None)

    @property
    def had_first(self) -> bool:
        """Whether a part has ever said that rank 0 runs on its host."""
        return any(part.part.is_first for part in self._by_host.values())

    def may_tell_progress(self, host: str) -> bool:
        """Returns whether what a host reports of the job's progress counts."""
        return self._first is None or self._first == host

    @property
    def missing(self) -> list[str]:
        """The hosts that a launcher names and that have no part, in order."""
        return sorted(frozenset().union(*self.lists).difference(self._present))

    def put(self, part: HostPart) -> HostPart:
        """Take the part of a host, in the place of the one before; returns it as it is kept.

        The list of hosts that a part tells counts as long as the job runs there.
        """
        self.forget(part.host)
        part = _with_hosts(part, self.lists.add(part.part.hosts) if part.is_running else NO_HOSTS)
        if part.over != "removed":
            insort(self._present, part.host)
            self._first = part.host if part.part.is_first else self._first
        if part.is_running:
            self._running.add(part.host)
        self._by_host[part.host] = part
        return part

    def forget_lists(self) -> None:
        """Forget the lists of hosts, which nobody needs after the end of the job."""
        if len(self.lists):
            self.lists = HostLists()
            self._by_host = {host: _with_hosts(part, NO_HOSTS) for host, part in self._by_host.items()}

    def forget(self, host: str) -> None:
        """Forget the part of a host, as if there had never been one."""
        before = self._by_host.pop(host, None)
        if before is None:
            return
        self._running.discard(host)
        self.lists.remove(before.part.hosts)
        if before.over != "removed":
            del self._present[bisect_left(self._present, host)]
        if self._first == host:
            self._first = None


def _with_hosts(part: HostPart, hosts: Hosts) -> HostPart:
    return part if part.part.hosts is hosts else replace(part, part=part.part._replace(hosts=hosts))
