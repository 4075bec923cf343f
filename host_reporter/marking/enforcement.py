"""Keeps the host equal to its plan: its marks, and the interface's tree.

An operation that the host does not permit is logged once. A change by another program is repaired and logged each time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from controller.wire import HostPlan
from host_reporter.discovery import cgroups
from host_reporter.discovery.cgroups import CgroupId
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.marking.iptables import IptablesError, Marker
from host_reporter.marking.marks_here import Marks, by_group, by_link, of_sockets
from host_reporter.marking.rules_text import Sent
from host_reporter.nic.interface import Nic, NicError
from host_reporter.notices import Notices
from host_reporter.repairs import Pace, Repairs

SocketMarker = Callable[[Mapping[str, int], Iterable[str]], None]
"""A function of the jobs' DSCPs and of the jobs whose sockets are marked one by one; see ``Discovery.mark``."""


class Enforcement:
    """Carries out the host's part of the plan. No method raises, and a fault of the marks does not stop the tree.

    Where ``marker`` or ``nic`` is None, that part is not touched. ``mark_sockets`` marks what no packet filter sees.
    ``is_there`` returns whether a cgroup still exists.

    Where the kernel can match packets by cgroup, the cgroup of a job's processes marks all that they send. Else the
    links of the job do. Sockets are marked themselves where there is no packet filter, or in other namespaces.
    """

    def __init__(
        self,
        marker: Marker | None,
        nic: Nic | None,
        notices: Notices,
        *,
        mark_sockets: SocketMarker | None = None,
        is_there: Callable[[CgroupId], bool] = cgroups.is_there,
    ) -> None:
        self._is_there = is_there
        self._marker = marker
        self._nic = nic
        self._notices = notices
        self._mark_sockets = mark_sockets
        self._lock = threading.RLock()
        self._plan: HostPlan | None = None
        self._is_paused = False
        """Whether all was taken away because the plan says so."""
        self._sources = PacketSources()
        self._matches_groups = True
        self._groups_again: Pace | None = None
        """When to try again to match packets by cgroup after a refusal; None where nothing was refused."""
        self._mark_repairs = Repairs("this host's packet filter (iptables, table mangle)", notices)
        self._nic_repairs = Repairs(f"the traffic control of {nic.interface if nic else 'no interface'}", notices)
        self._filters = True
        """Whether the packet filter accepted the last marks; if not, it is not tried again for each connection."""

    def apply(self, plan: HostPlan, *, look: bool = True) -> bool:
        """Serve the classes and mark the jobs as the plan says. Returns whether all of it succeeded.

        Where the plan is paused, all is taken away instead. With ``look``, matches by cgroup are tried again even if
        the kernel could not do them before.
        """
        with self._lock:
            if plan.paused:
                return self._pause()
            self._is_paused = False
            self._notices.clear("paused", "the plan is no longer paused")
            done = True
            if self._nic is not None:
                try:
                    # The classes come first, because marked packets need their queues.
                    was = self._nic.apply(plan.egress_bps, plan.class_dscp, plan.class_floor, plan.other_floor)
                    if was:
                        self._nic_repairs.say(was)
                    self._notices.clear("nic", f"{self._nic.interface} serves the classes")
                except NicError as error:
                    done = False
                    self._notices.say("nic", f"this host's interface does not order its traffic: {error}")
                self._guard(self._nic)
            self._plan = plan
            # The kernel may accept now what it refused before.
            self._matches_groups |= look
            return self._apply_marks() and done

    def reconcile(self) -> None:
        """Repair what other programs have changed, and log each repair."""
        with self._lock:
            if self._nic is not None:
                self._reconcile_nic(self._nic)
            if self._marker is not None and self._marker.is_marking:
                self._reconcile_marks(self._marker)

    def set_sources(self, sources: PacketSources) -> None:
        """Mark the packets of these sources from now on. The thread that looks for sockets calls this."""
        with self._lock:
            before, self._sources = self._sources, sources
            if self._plan is None or not any(mark.is_whole for mark in self._plan.marks):
                return
            if not self._filters and self._mark_sockets is not None:
                self._mark_sockets(of_sockets(self._plan.marks, sources), sources.jobs)
            elif (before.groups, before.brought) != (sources.groups, sources.brought) or not self._by_group_alone(
                sources
            ):
                self._apply_marks()

    def sent_bytes(self) -> Mapping[str, Sent]:
        """Returns the marked bytes sent, by job, without the jobs whose bytes are counted at their sockets."""
        with self._lock:
            try:
                sent = self._marker.sent_bytes() if self._marker is not None else {}
            except IptablesError as error:
                self._notices.say("marks", f"marked bytes cannot be counted: {error}")
                return {}
            return {job: count for job, count in sent.items() if job not in self._sources.jobs}

    @property
    def is_marking(self) -> bool:
        """Whether rules are installed, whose bytes can be counted."""
        return self._marker is not None and self._marker.is_marking

    @property
    def marks_acknowledgements(self) -> bool:
        """Whether jobs' acknowledgements, and no other packets, leave with the DSCP of acknowledgements."""
        return self._filters and self._marker is not None and self._marker.marks_acknowledgements

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
            self._remove_tree()

    def _pause(self) -> bool:
        """Take away the marks and the tree, those of a killed agent too; returns whether that succeeded."""
        if not self._is_paused:
            self._plan = None
            is_done = self._unmark(_remove_all) & self._remove_tree()
            if is_done:
                self._notices.say("paused", "the plan is paused: marks and tree are taken away", logging.INFO)
            self._is_paused = is_done
        return self._is_paused

    def _remove_tree(self) -> bool:
        """Returns whether the tree is gone."""
        if self._nic is not None:
            try:
                self._nic.remove()
                self._nic.remove_left()
            except NicError as error:
                self._notices.say("nic", f"the tree cannot be taken away: {error}")
                return False
        return True

    def _reconcile_nic(self, nic: Nic) -> None:
        try:
            if self._nic_repairs.look(nic):
                self._notices.clear("nic", f"{nic.interface} serves the classes")
                self._guard(nic)
        except NicError as error:
            self._notices.say("nic", f"this host's interface does not order its traffic: {error}")
            return
        self._say_all("in front", nic.obstacles, "no filter of somebody else is before the agent's any more")

    def _reconcile_marks(self, marker: Marker) -> None:
        try:
            self._mark_repairs.look(marker)
            self._notices.clear("upkeep", "this host's marks are looked after again")
        except IptablesError as error:
            if self._plan is None:
                self._notices.say("upkeep", f"this host's marks cannot be looked after: {error}")
            else:
                self._apply_marks()
        else:
            if (
                self._plan is not None
                and self._groups_again is not None
                and self._groups_again.is_due(time.monotonic())
            ):
                self._apply_marks()
        self._say_obstacles(marker)

    def _say_obstacles(self, marker: Marker) -> None:
        self._say_all("obstacles", marker.obstacles, "no rule of somebody else is in the marks' way any more")

    def _say_all(self, key: str, sentences: Iterable[str], over: str) -> None:
        if text := "; ".join(sentences):
            self._notices.say(key, text)
        else:
            self._notices.clear(key, over)

    def _guard(self, nic: Nic) -> None:
        try:
            nic.watch()
            self._notices.clear("guard")
        except NicError as error:
            self._notices.say("guard", f"{nic.interface}: {error}")

    def _apply_marks(self) -> bool:
        plan, sources = self._plan, self._sources
        assert plan is not None
        done = True
        sockets = frozenset[str]()
        try:
            if self._marker is not None:
                self._apply_filters(self._marker, plan, sources)
            self._filters = True
            self._notices.clear("marks", "traffic is marked")
        except IptablesError as error:
            done = self._filters = False
            sockets = sources.jobs
            whole = any(mark.is_whole for mark in plan.marks)
            rest = "; sockets that are found are marked one by one" if whole and self._mark_sockets else ""
            self._notices.say("marks", f"this host's traffic is not marked: {error}{rest}")
        if self._mark_sockets is not None:
            self._mark_sockets(of_sockets(plan.marks, sources) if self._marker is not None else {}, sockets)
        return done

    def _apply_filters(self, marker: Marker, plan: HostPlan, sources: PacketSources) -> None:
        """Mark jobs by cgroup; where the kernel refuses that, by links. Raises IptablesError."""
        if self._matches_groups:
            marks = by_group(plan.marks, sources)
            try:
                self._mark(marker, marks)
            except IptablesError as error:
                if not marks.grouped:
                    raise
                self._apply_refused(marker, plan, sources, error)
            else:
                if marks.grouped:
                    self._groups_again = None
                    self._notices.clear("groups", "packets are matched by their cgroup")
        else:
            self._mark(marker, by_link(plan.marks, sources))

    def _apply_refused(self, marker: Marker, plan: HostPlan, sources: PacketSources, error: IptablesError) -> None:
        """Mark jobs after the kernel has refused marks by cgroup, and find out why. Raises IptablesError."""
        present = sources.with_groups(self._is_there)
        is_gone = present != sources
        marks = by_group(plan.marks, present)
        try:
            if not is_gone:
                raise error
            # A cgroup is gone. Discovery learns of that too, within a second.
            self._mark(marker, marks)
            if marks.grouped:
                return
        except IptablesError:
            is_gone = False
            self._mark(marker, by_link(plan.marks, sources))
        # This tests the kernel itself, because a change by another program at the same moment may cause a refusal too.
        why = marker.why_no_groups()
        if why is not None:
            self._matches_groups = False
            reason = f"packets are not matched by their cgroup: {why}"
        elif not is_gone:
            self._groups_again = self._groups_again or Pace()
            self._groups_again.repaired(time.monotonic())
            reason = f"this host's packet filter has refused marks by cgroup, which it can match: {error}"
        else:
            return
        self._notices.say("groups", f"{reason}; jobs are marked by the connections that are found")

    def _mark(self, marker: Marker, marks: Marks) -> None:
        was = marker.apply(marks.marks)
        if was:
            self._mark_repairs.say(was)
        self._say_left_out(marks.left_out)
        self._say_obstacles(marker)

    def _say_left_out(self, count: int) -> None:
        if count:
            self._notices.say(
                "links",
                "jobs without a cgroup of their own have too many connections to mark each; some are other traffic: "
                "run them in cgroups",
            )
        else:
            self._notices.clear("links")

    def _by_group_alone(self, sources: PacketSources) -> bool:
        """Returns whether no mark depends on links."""
        assert self._plan is not None
        jobs = {mark.job for mark in self._plan.marks if mark.is_whole} & sources.jobs
        return self._matches_groups and jobs <= sources.groups.keys()

    def _unmark(self, change: Callable[[Marker], None]) -> bool:
        """Returns whether it succeeded."""
        if self._mark_sockets is not None:
            self._mark_sockets({}, ())
        try:
            if self._marker is not None:
                change(self._marker)
        except IptablesError as error:
            self._notices.say("marks", f"the marks cannot be taken away: {error}")
            return False
        return True


def _remove_all(marker: Marker) -> None:
    if marker.is_marking:
        marker.remove()
    else:
        marker.remove_left()
