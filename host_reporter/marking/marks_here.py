"""A plan's marks as this host can make them: what is of a whole job becomes its cgroup, or the links found. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controller.wire import Mark
from host_reporter.discovery.links import Link
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.traffic_report import text_of
from host_reporter.marking.rules_text import AnyMark, GroupMark

MAX_LINK_MARKS = 1024
"""Use at most so many marks by link, since every packet is compared with each of them in turn."""


class Marks(NamedTuple):
    """Marks for the packet filter. ``grouped``: how many are by cgroup; ``left_out``: links that were too many."""

    marks: tuple[AnyMark, ...]
    grouped: int
    left_out: int


def by_group(marks: Iterable[Mark], sources: PacketSources) -> Marks:
    """Jobs by their cgroups; those that have none by their links."""
    return _marks(marks, sources, use_groups=True)


def by_link(marks: Iterable[Mark], sources: PacketSources) -> Marks:
    """Jobs by their links alone."""
    return _marks(marks, sources, use_groups=False)


def of_sockets(marks: Iterable[Mark], sources: PacketSources) -> dict[str, int]:
    """The DSCP of each job that is followed, for its sockets."""
    return {mark.job: mark.dscp for mark in marks if mark.is_whole and mark.job in sources.jobs}


def _marks(marks: Iterable[Mark], sources: PacketSources, *, use_groups: bool) -> Marks:
    grouped: list[AnyMark] = []
    links: list[Mark] = []
    others: list[AnyMark] = []
    for mark in marks:
        if not mark.is_whole:
            others.append(mark)
        elif mark.job not in sources.jobs:
            # Its file is gone; the controller hears of that in a moment.
            continue
        elif use_groups and (group := sources.groups.get(mark.job)) is not None:
            grouped.append(GroupMark(mark.job, mark.dscp, group))
            links += _by_links(mark, sources.brought.get(mark.job, ()))
        else:
            links += _by_links(mark, sources.links.get(mark.job, ()))
    # Whose process sends a packet is surer than whose port it is from.
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
