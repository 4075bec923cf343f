"""Keeps the host equal to its plan: its marks, and its interfaces' trees.

An operation that the host does not permit is logged once. A change by another program is repaired and logged each time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from controller.code_points import CodePoints
from controller.wire import MAX_TUNNEL_PORTS, HostPlan
from host_reporter.discovery import cgroups
from host_reporter.discovery.cgroups import CgroupId
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.marking.families import Reach, ipv6_reach
from host_reporter.marking.iptables import Marker
from host_reporter.marking.marks_here import of_sockets
from host_reporter.marking.outer_headers import NO_TUNNELS, outer
from host_reporter.marking.packet_filter import PacketFilter, follow_each_other
from host_reporter.marking.rules_text import Sent
from host_reporter.marking.sent import SentOverFamilies
from host_reporter.nic import netdev_list
from host_reporter.nic.netdev import Tunnel
from host_reporter.nic.trees import Trees
from host_reporter.notices import Notices

SocketMarker = Callable[[Mapping[str, int], Iterable[str], CodePoints | None, Iterable[str]], None]
"""A function of the jobs' DSCPs, of the jobs whose sockets are marked one by one, of the plan's DSCPs, and of the jobs
of which this holds for sockets over IPv6 alone; see ``Discovery.mark``."""


class Marking(NamedTuple):
    """What this host marks: the packets of ``jobs`` with the DSCPs of the plan (None: not known), their
    ``acknowledgements``, and what its tunnels send to ``tunnel_ports``, as the controller's ``HostReport`` says it."""

    jobs: bool | None = None
    acknowledgements: bool = False
    tunnel_ports: tuple[int, ...] = ()


class Enforcement:
    """Carries out the host's part of the plan. No method raises, and a fault of the marks does not stop the tree.

    Where a marker or ``trees`` is None, that part is not touched. ``mark_sockets`` marks what no packet filter sees.
    ``is_there`` returns whether a cgroup still exists, ``reach`` how far the host's IPv6 addresses reach, and
    ``tunnels`` those that have a device; it may raise OSError.

    Sockets are marked themselves where there is no packet filter, or in other namespaces.
    """

    def __init__(
        self,
        marker: Marker | None,
        trees: Trees | None,
        notices: Notices,
        *,
        marker_ipv6: Marker | None = None,
        mark_sockets: SocketMarker | None = None,
        is_there: Callable[[CgroupId], bool] = cgroups.is_there,
        reach: Callable[[], Reach] = ipv6_reach,
        tunnels: Callable[[], Iterable[Tunnel]] = netdev_list.tunnels,
    ) -> None:
        self._tunnels = tunnels
        self._present: tuple[Tunnel, ...] = ()
        self._outer = NO_TUNNELS
        self._filter = PacketFilter(marker, notices, is_there=is_there) if marker is not None else None
        self._filter_ipv6 = (
            PacketFilter(marker_ipv6, notices, is_there=is_there, reach=reach) if marker_ipv6 is not None else None
        )
        self._filters = [each for each in (self._filter, self._filter_ipv6) if each is not None]
        self._sent = SentOverFamilies()
        self._trees = trees
        self._notices = notices
        self._mark_sockets = mark_sockets
        self._lock = threading.RLock()
        self._plan: HostPlan | None = None
        self._is_paused = False
        """Whether all was taken away because the plan says so."""
        self._sources = PacketSources()

    def apply(self, plan: HostPlan, *, look: bool = True) -> bool:
        """Serve the classes and mark the jobs as the plan says. Returns whether all of it succeeded.

        Where the plan is paused, all is taken away instead. With ``look``, what the kernel could not do before is
        tried again.
        """
        with self._lock:
            if plan.paused:
                return self._pause()
            self._is_paused = False
            self._notices.clear("paused", "the plan is no longer paused")
            # The classes come first, because marked packets need their queues.
            done = self._trees is None or self._trees.apply(plan)
            self._plan = plan
            self._look_for_tunnels(plan)
            return self._apply_marks(plan, self._filters, look=look) and done

    def reconcile(self) -> None:
        """Repair what other programs have changed, and log each repair."""
        with self._lock:
            if self._trees is not None:
                self._trees.reconcile()
            if self._plan is not None and self._look_for_tunnels(self._plan):
                self._apply_marks(self._plan, [each for each in self._filters if each.is_accepting], look=False)
            for each in self._filters:
                if each.marker.is_marking:
                    each.reconcile(self._plan, self._sources, rest=self._rest(self._plan))
            if self._plan is not None:
                self._apply_to_sockets(self._plan)

    def set_sources(self, sources: PacketSources) -> None:
        """Mark the packets of these sources from now on. The thread that looks for sockets calls this."""
        with self._lock:
            before, self._sources = self._sources, sources
            if self._plan is None or not any(mark.is_whole for mark in self._plan.marks):
                return
            is_other = (before.groups, before.brought) != (sources.groups, sources.brought)
            plan = self._plan
            is_other |= before.pods != sources.pods and self._look_for_tunnels(plan)
            due = [
                each
                for each in self._filters
                if each.is_accepting and (is_other or not each.is_by_group_alone(plan, sources))
            ]
            self._apply_marks(plan, due, look=False)

    def sent_bytes(self) -> Mapping[str, Sent]:
        """Returns the marked bytes sent, by job, without the jobs whose bytes are counted at their sockets."""
        with self._lock:
            sent = self._sent.add([each.sent_bytes() for each in self._filters])
            return {job: count for job, count in sent.items() if job not in self._sources.jobs}

    @property
    def is_marking(self) -> bool:
        """Whether rules are installed, whose bytes can be counted."""
        return any(each.marker.is_marking for each in self._filters)

    @property
    def marking(self) -> Marking:
        """What this host marks now."""
        with self._lock:
            return Marking(self._marks_jobs(), self._marks_acknowledgements(), self._tunnel_ports())

    def _marks_jobs(self) -> bool | None:
        if not self._filters or self._is_paused:
            return False
        if self._plan is None:
            return None
        if any(each.is_accepting and each.marker.is_marking for each in self._filters):
            return True
        return None if self._mark_sockets is not None else False

    def _marks_acknowledgements(self) -> bool:
        """Returns whether jobs' acknowledgements, and no other packets, leave with the DSCP of acknowledgements."""
        installed = self._installed()
        return bool(installed) and all(each.is_accepting and each.marker.marks_acknowledgements for each in installed)

    def _tunnel_ports(self) -> tuple[int, ...]:
        """Returns the UDP ports of tunnels, if no packet to there leaves with a DSCP of ours that is not its job's."""
        installed = self._installed()
        headers = [each.marker.outer for each in installed if each.marker.outer.tunnels]
        if not all(each.is_accepting for each in installed) or not all(each.can_look for each in headers):
            return ()
        ports = {tunnel.udp_port for each in headers for tunnel in each.tunnels if tunnel.udp_port}
        return tuple(sorted(ports)[:MAX_TUNNEL_PORTS])

    def _installed(self) -> list[PacketFilter]:
        """Returns the filters that mark, and those that should and cannot."""
        return [each for each in self._filters if each.marker.is_marking or not each.is_accepting]

    def open(self) -> None:
        """Remove the marks, so that all traffic is served alike. Rules still clear the DSCPs that programs set."""
        with self._lock:
            self._plan = None
            self._unmark(lambda marker: marker.open())

    def remove(self) -> None:
        """Remove the marks and the tree."""
        with self._lock:
            self._plan = None
            self._unmark(lambda marker: marker.remove())
            if self._trees is not None:
                self._trees.remove()

    def _pause(self) -> bool:
        """Take away the marks and the tree, those of a killed agent too; returns whether that succeeded."""
        if not self._is_paused:
            self._plan = None
            is_done = self._unmark(_remove_all) & (self._trees is None or self._trees.remove())
            if is_done:
                self._notices.say("paused", "the plan is paused: marks and tree are taken away", logging.INFO)
            self._is_paused = is_done
        return self._is_paused

    def _apply_marks(self, plan: HostPlan, filters: Iterable[PacketFilter], *, look: bool) -> bool:
        """Returns whether all of these filters mark."""
        rest, done = self._rest(plan), True
        for each in filters:
            done &= each.apply(plan, self._sources, look=look, rest=rest)
            follow_each_other(self._filters)
        self._apply_to_sockets(plan)
        return done

    def _look_for_tunnels(self, plan: HostPlan) -> bool:
        """Let the filters mark the packets of the tunnels that are there now. Returns whether that is a change."""
        # Without a job's pod, what tunnels send is cleared like all else.
        if plan.marks and self._filters and self._sources.pods:
            with contextlib.suppress(OSError):
                self._present = tuple(self._tunnels())
        dscps = {mark.job: mark.dscp for mark in plan.marks if mark.is_whole}
        found = outer(self._present, self._sources.pods, dscps)
        for each in self._filters:
            each.outer = found
        was, self._outer = self._outer, found
        return was != found

    def _apply_to_sockets(self, plan: HostPlan) -> None:
        """Mark the sockets whose packets no filter marks."""
        if self._mark_sockets is None:
            return
        dscps = of_sockets(plan.marks, self._sources) if self._filters else {}
        self._mark_sockets(
            dscps, self._jobs_without(self._filter), plan.code_points, self._jobs_without(self._filter_ipv6)
        )

    def _jobs_without(self, refusing: PacketFilter | None) -> frozenset[str]:
        """Returns the jobs whose packets a filter does not mark because it cannot."""
        return frozenset() if refusing is None or refusing.is_accepting else self._sources.jobs

    def _rest(self, plan: HostPlan | None) -> str:
        """Returns what happens to jobs that no filter marks, as the end of a sentence."""
        is_whole = plan is not None and any(mark.is_whole for mark in plan.marks)
        return "; sockets that are found are marked one by one" if is_whole and self._mark_sockets else ""

    def _unmark(self, change: Callable[[Marker], None]) -> bool:
        """Returns whether it succeeded."""
        if self._mark_sockets is not None:
            self._mark_sockets({}, (), None, ())
        done = [each.unmark(change) for each in self._filters]
        return all(done)


def _remove_all(marker: Marker) -> None:
    if marker.is_marking:
        marker.remove()
    else:
        marker.remove_left()
