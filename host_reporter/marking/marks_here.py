"""Turns a plan's marks into marks that this host can install: whole jobs become cgroups or links. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controller.wire import Mark
from host_reporter.discovery.links import Link
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.traffic_report import text_of
from host_reporter.marking.rules_text import AnyMark, GroupMark

MAX_LINK_MARKS = 1024
"""Use at most this many marks by link, because each packet is compared with all of them in turn."""


class Marks(NamedTuple):
    """Marks for the packet filter. ``grouped`` counts those by cgroup, ``left_out`` the links over the limit."""

    marks: tuple[AnyMark, ...]
    grouped: int
    left_out: int


def by_group(marks: Iterable[Mark], sources: PacketSources) -> Marks:
    """Returns marks of jobs by their cgroups, and of jobs without a cgroup by their links."""
    return _marks(marks, sources, use_groups=True)


def by_link(marks: Iterable[Mark], sources: PacketSources) -> Marks:
    """Returns marks of jobs by their links only."""
    return _marks(marks, sources, use_groups=False)


def of_sockets(marks: Iterable[Mark], sources: PacketSources) -> dict[str, int]:
    """Returns the DSCP of each followed job, for its sockets."""
    return {mark.job: mark.dscp for mark in marks if mark.is_whole and mark.job in sources.jobs}


def _marks(marks: Iterable[Mark], sources: PacketSources, *, use_groups: bool) -> Marks:
    grouped: list[AnyMark] = []
    links: list[Mark] = []
    others: list[AnyMark] = []
    for mark in marks:
        if not mark.is_whole:
            others.append(mark)
        elif mark.job not in sources.jobs:
            # The job's file is gone, and the next report tells the controller so.
            continue
        elif use_groups and (group := sources.groups.get(mark.job)) is not None:
            grouped.append(GroupMark(mark.job, mark.dscp, group))
            links += _by_links(mark, sources.brought.get(mark.job, ()))
        else:
            links += _by_links(mark, sources.links.get(mark.job, ()))
    # Marks by cgroup come first, because a process identifies a job more surely than a port does.
    kept = links[:MAX_LINK_MARKS]
    return Marks((*grouped, *kept, *others), len(grouped), len(links) - len(kept))


def _by_links(mark: Mark, links: Iterable[Link]) -> list[Mark]:
    return [
        mark.model_copy(
            update={
                "remote": text_of(link.remote),
                "local_port": link.local_port,
                "remote_port": link.remote_port,
            }
        )
        for link in sorted(links, key=lambda link: (link.remote, str(link)))
    ]
