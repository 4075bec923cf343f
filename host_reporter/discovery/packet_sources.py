"""Where jobs' packets come from on this host, for those who mark them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from host_reporter.discovery.cgroups import CgroupId
from host_reporter.discovery.sockets.links import Link


@dataclass(frozen=True)
class PacketSources:
    """What packet filters can tell jobs' packets by: the cgroup, or the links in the agent's own namespace.

    ``jobs``: all whose sockets are looked for. ``brought``: of jobs with a group, connections that are not of it: their
    processes had them before they came into it. ``pods``: the addresses of the other network namespaces that jobs have
    sockets in.
    """

    jobs: frozenset[str] = frozenset()
    groups: Mapping[str, CgroupId] = field(default_factory=dict)
    links: Mapping[str, frozenset[Link]] = field(default_factory=dict)
    brought: Mapping[str, frozenset[Link]] = field(default_factory=dict)
    pods: Mapping[str, frozenset[bytes]] = field(default_factory=dict)

    def with_groups(self, is_there: Callable[[CgroupId], bool]) -> PacketSources:
        """The same without the groups that are not there."""
        return replace(self, groups={job: group for job, group in self.groups.items() if is_there(group)})
