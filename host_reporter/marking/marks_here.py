"""Turns a plan's marks into marks that this host can install: whole jobs become cgroups or links. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controller.wire import Mark
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.sockets.links import Link
from host_reporter.ip_addresses import is_ipv4, packed, text_of
from host_reporter.marking.families import IPV4, Family
from host_reporter.marking.rules_text import AnyMark, GroupMark

MAX_LINK_MARKS = 1024
"""Use at most this many marks by link, because each packet is compared with all of them in turn."""


class Marks(NamedTuple):
    """Marks for the packet filter. ``grouped`` counts those by cgroup, ``left_out`` the links over the limit."""

    marks: tuple[AnyMark, ...]
    grouped: int
    left_out: int

    @property
    def ungrouped(self) -> list[str]:
        """The names of the jobs of which no cgroup is known, sorted."""
        grouped = {mark.job for mark in self.marks if isinstance(mark, GroupMark)}
        return sorted({mark.job for mark in self.marks} - grouped)


def by_group(marks: Iterable[Mark], sources: PacketSources, family: Family = IPV4) -> Marks:
    """Returns marks of jobs by their cgroups, and of jobs without a cgroup by their links of a family."""
    return _marks(marks, sources, family, use_groups=True)


def by_link(marks: Iterable[Mark], sources: PacketSources, family: Family = IPV4) -> Marks:
    """Returns marks of jobs by their links of a family only."""
    return _marks(marks, sources, family, use_groups=False)


def of_sockets(marks: Iterable[Mark], sources: PacketSources) -> dict[str, int]:
    """Returns the DSCP of each followed job, for its sockets."""
    return {mark.job: mark.dscp for mark in marks if mark.is_whole and mark.job in sources.jobs}


def _marks(marks: Iterable[Mark], sources: PacketSources, family: Family, *, use_groups: bool) -> Marks:
    grouped: list[AnyMark] = []
    links: list[Mark] = []
    others: list[AnyMark] = []
    for mark in marks:
        if not mark.is_whole:
            others += [mark] * _may_match(mark, family)
        elif mark.job not in sources.jobs:
            # The job's file is gone, and the next report tells the controller so.
            continue
        elif use_groups and (group := sources.groups.get(mark.job)) is not None:
            grouped.append(GroupMark(mark.job, mark.dscp, group))
            links += _by_links(mark, sources.brought.get(mark.job, ()), family)
        else:
            links += _by_links(mark, sources.links.get(mark.job, ()), family)
    # Marks by cgroup come first, because a process identifies a job more surely than a port does.
    kept = links[:MAX_LINK_MARKS]
    return Marks((*grouped, *kept, *others), len(grouped), len(links) - len(kept))


def _may_match(mark: Mark, family: Family) -> bool:
    """Returns whether a mark is for packets of a family. One whose address is none is for IPv4, which refuses it."""
    address = packed(mark.remote) if mark.remote is not None else None
    is_ipv6 = address is not None and not is_ipv4(address)
    return mark.remote is None or is_ipv6 is family.is_ipv6


def _by_links(mark: Mark, links: Iterable[Link], family: Family) -> list[Mark]:
    # One mark is for all addresses at this end.
    links = {link._replace(local=b"") for link in links}
    return [
        mark.model_copy(
            update={
                "remote": text_of(link.remote),
                "local_port": link.local_port,
                "remote_port": link.remote_port,
            }
        )
        for link in sorted(links, key=lambda link: (link.remote, str(link)))
        if is_ipv4(link.remote) is not family.is_ipv6
    ]
