"""Makes the host equal to its plan: marks, and the interface's tree. What is not permitted here is said once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from controller.wire import HostPlan
from host_reporter.discovery.whereabouts import Whereabouts
from host_reporter.iptables import IptablesError, Marker
from host_reporter.marking import Sent
from host_reporter.marks_here import by_group, by_link, of_sockets
from host_reporter.nic import Nic, NicError
from host_reporter.notices import Notices

SocketMarker = Callable[[Mapping[str, int], Iterable[str]], None]
"""Takes jobs' DSCPs, and the jobs whose sockets are to be marked one by one; see ``Discovery.mark``."""


class Enforcement:
    """The host's side of the plan. No method raises; each part goes on without the other.

    ``marker``, ``nic`` of None: that part is left alone. ``mark_sockets``: who marks what no packet filter sees.

    All that a job's processes send is marked by their cgroup where the kernel can match that; else by the links that
    were found; and on the sockets themselves where there is no packet filter, or they are in another namespace.
    """

    def __init__(
        self, marker: Marker | None, nic: Nic | None, notices: Notices, *, mark_sockets: SocketMarker | None = None
    ) -> None:
        self._marker = marker
        self._nic = nic
        self._notices = notices
        self._mark_sockets = mark_sockets
        self._lock = threading.RLock()
        self._plan: HostPlan | None = None
        self._where = Whereabouts()
        self._matches_groups = True
        self._filters = True
        """Whether the packet filter took the marks last; where it did not, it is not asked for each connection."""

    def apply(self, plan: HostPlan, *, look: bool = True) -> bool:
        """Serve and mark as the plan says; whether all of it was done. ``look``: whether what is there is looked at."""
        with self._lock:
            done = True
            if self._nic is not None:
                try:
                    # The classes first: marked packets must find their queues.
                    self._nic.apply(plan.egress_bps, plan.class_dscp, plan.class_floor, plan.other_floor, look=look)
                    self._notices.clear("nic", f"{self._nic.interface} serves the classes")
                except NicError as error:
                    done = False
                    self._notices.say("nic", f"this host's interface does not order its traffic: {error}")
                self._guard(self._nic)
            self._plan = plan
            # What failed may work now.
            self._matches_groups |= look
            return self._apply_marks() and done

    def moved(self, where: Whereabouts) -> None:
        """Jobs' sockets are to be told by something else now. From the thread that looks for them."""
        with self._lock:
            before, self._where = self._where, where
            if self._plan is None or not any(mark.is_whole for mark in self._plan.marks):
                return
            if not self._filters and self._mark_sockets is not None:
                self._mark_sockets(of_sockets(self._plan.marks, where), where.jobs)
            elif (before.groups, before.brought) != (where.groups, where.brought) or not self._by_group_alone(where):
                self._apply_marks()

    def sent_bytes(self) -> Mapping[str, Sent]:
        """Bytes that left, by job. Of jobs whose sockets are found these tell their bytes."""
        with self._lock:
            try:
                sent = self._marker.sent_bytes() if self._marker is not None else {}
            except IptablesError as error:
                self._notices.say("marks", f"marked bytes cannot be counted: {error}")
                return {}
            return {job: its for job, its in sent.items() if job not in self._where.jobs}

    @property
    def is_marking(self) -> bool:
        """Whether there are bytes to count, and rules to look after."""
        return self._marker is not None and self._marker.is_marking

    @property
    def marks_acknowledgements(self) -> bool:
        """Whether jobs' acknowledgements leave with their own DSCP, and nothing else does."""
        return self._filters and self._marker is not None and self._marker.marks_acknowledgements

    def open(self) -> None:
        """Take the marks away: all traffic is served alike, and no program takes a class for itself meanwhile."""
        with self._lock:
            self._plan = None
            self._unmark(lambda marker: marker.open())

    def remove(self) -> None:
        """Take away all that was made."""
        with self._lock:
            self._plan = None
            self._unmark(lambda marker: marker.remove())
            if self._nic is not None:
                try:
                    self._nic.remove()
                except NicError as error:
                    self._notices.say("nic", f"the tree cannot be taken away: {error}")

    def _guard(self, nic: Nic) -> None:
        try:
            nic.watch()
            self._notices.clear("guard")
        except NicError as error:
            self._notices.say("guard", f"{nic.interface}: {error}")

    def _apply_marks(self) -> bool:
        plan, where = self._plan, self._where
        assert plan is not None
        done = True
        sockets = frozenset[str]()
        try:
            if self._marker is not None:
                self._apply_filters(self._marker, plan, where)
            self._filters = True
            self._notices.clear("marks", "traffic is marked")
        except IptablesError as error:
            done = self._filters = False
            sockets = where.jobs
            whole = any(mark.is_whole for mark in plan.marks)
            rest = "; sockets that are found are marked one by one" if whole and self._mark_sockets else ""
            self._notices.say("marks", f"this host's traffic is not marked: {error}{rest}")
        if self._mark_sockets is not None:
            self._mark_sockets(of_sockets(plan.marks, where) if self._marker is not None else {}, sockets)
        return done

    def _apply_filters(self, marker: Marker, plan: HostPlan, where: Whereabouts) -> None:
        """By cgroup; where the kernel refuses that, by links. Raises IptablesError."""
        if self._matches_groups:
            marks = by_group(plan.marks, where)
            try:
                marker.apply(marks.marks)
            except IptablesError as error:
                if not marks.grouped:
                    raise
                # A group may have gone a moment ago; or the kernel matches none at all.
                self._matches_groups = False
                reason = f"packets are not told by their cgroup: {error}"
                self._notices.say("groups", f"{reason}; jobs are marked by the connections that are found")
            else:
                if marks.grouped:
                    self._notices.clear("groups", "packets are told by their cgroup")
                self._say_left_out(marks.left_out)
                return
        marks = by_link(plan.marks, where)
        marker.apply(marks.marks)
        self._say_left_out(marks.left_out)

    def _say_left_out(self, count: int) -> None:
        if count:
            self._notices.say(
                "links",
                "jobs without a cgroup of their own have too many connections to mark each; some are other traffic: "
                "run them in cgroups",
            )
        else:
            self._notices.clear("links")

    def _by_group_alone(self, where: Whereabouts) -> bool:
        """Whether no mark depends on the links that were found."""
        assert self._plan is not None
        jobs = {mark.job for mark in self._plan.marks if mark.is_whole} & where.jobs
        return self._matches_groups and jobs <= where.groups.keys()

    def _unmark(self, how: Callable[[Marker], None]) -> None:
        if self._mark_sockets is not None:
            self._mark_sockets({}, ())
        try:
            if self._marker is not None:
                how(self._marker)
        except IptablesError as error:
            self._notices.say("marks", f"the marks cannot be taken away: {error}")
