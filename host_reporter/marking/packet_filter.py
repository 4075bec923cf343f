"""Marks packets of one address family with the kernel's packet filter, and says what is in the way.

Where the kernel can match packets by cgroup, the cgroup of a job's processes marks all that they send. Else the links
of the job do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from controller.wire import HostPlan
from host_reporter.discovery.cgroups import CgroupId
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.marking.families import Reach
from host_reporter.marking.iptables import IptablesError, Marker
from host_reporter.marking.marks_here import Marks, by_group, by_link
from host_reporter.marking.outer_headers import NO_TUNNELS
from host_reporter.marking.rules_text import Sent
from host_reporter.notices import Notices
from host_reporter.repairs import Pace, Repairs

_SHOWN_JOBS = 10


class PacketFilter:
    """Keeps the marks of one family equal to the plan. No method raises. It is not thread-safe.

    ``is_there`` returns whether a cgroup still exists, and ``reach`` how far the host's addresses of the family reach.
    Where they reach nothing, nothing is installed. On a link alone no job is marked, but DSCPs are cleared.
    """

    def __init__(
        self,
        marker: Marker,
        notices: Notices,
        *,
        is_there: Callable[[CgroupId], bool],
        reach: Callable[[], Reach] = lambda: "network",
    ) -> None:
        self.marker = marker
        self._family = family = marker.family
        self._notices = notices
        self._is_there = is_there
        self._reach = reach
        self._repairs = Repairs(f"this host's packet filter ({family.tool}, table mangle)", notices)
        self._key = " ipv6" if family.is_ipv6 else ""
        self._matches_groups = True
        self._groups_again: Pace | None = None
        """When to try again to match packets by cgroup after a refusal; None where nothing was refused."""
        self._has_failed = False
        self.is_accepting = True
        """Whether the filter accepted the last marks; if not, it is not tried again for each connection."""
        self.outer = NO_TUNNELS
        """What the packets of tunnels get from the next ``apply`` on."""

    def apply(self, plan: HostPlan, sources: PacketSources, *, look: bool, rest: str) -> bool:
        """Mark the jobs as the plan says. Returns whether that succeeded.

        With ``look``, what the kernel could not do before is tried again. ``rest`` says what happens in place of marks.
        """
        self._matches_groups |= look
        reach = self._reach()
        if reach == "nothing" and not self.marker.is_marking:
            self.is_accepting = True
            return True
        if self._has_failed and self._family.is_ipv6 and not (look or self.marker.has_tool):
            # To look for a tool that works costs processes, and plans come often.
            return self.is_accepting
        if reach != "network":
            sources = PacketSources()
            plan = plan.model_copy(update={"marks": (), "protocol_marks": ()})
        try:
            self._apply(plan, sources)
        except IptablesError as error:
            # No other host of the settings can be reached over a link's own addresses.
            self.is_accepting, self._has_failed = reach == "link", True
            if not self.is_accepting:
                self._say("marks", f"this host's {self._family.word}traffic is not marked: {error}{rest}")
        else:
            self.is_accepting, self._has_failed = True, False
            self._clear("marks", f"{self._family.word}traffic is marked")
        return self.is_accepting

    def reconcile(self, plan: HostPlan | None, sources: PacketSources, *, rest: str) -> None:
        """Repair what other programs have changed, and log each repair. A ``plan`` of None: none is in force."""
        try:
            self._repairs.look(self.marker)
            self._clear("upkeep", f"this host's {self._family.word}marks are looked after again")
        except IptablesError as error:
            if plan is None:
                self._say("upkeep", f"this host's {self._family.word}marks cannot be looked after: {error}")
            else:
                self.apply(plan, sources, look=False, rest=rest)
        else:
            if plan is not None and self._groups_again is not None and self._groups_again.is_due(time.monotonic()):
                self.apply(plan, sources, look=False, rest=rest)
        self._say_obstacles()

    def sent_bytes(self) -> Mapping[str, Sent]:
        """Returns the marked bytes sent, by job."""
        try:
            return self.marker.sent_bytes()
        except IptablesError as error:
            self._say("marks", f"marked {self._family.word}bytes cannot be counted: {error}")
            return {}

    def unmark(self, change: Callable[[Marker], None]) -> bool:
        """Change the marker, such as by ``Marker.open``. Returns whether it succeeded."""
        try:
            change(self.marker)
        except IptablesError as error:
            if self._family.is_ipv6 and not self.marker.has_tool:
                # Where IPv6 cannot be marked, nothing was marked.
                return True
            self._say("marks", f"the {self._family.word}marks cannot be taken away: {error}")
            return False
        return True

    def is_by_group_alone(self, plan: HostPlan, sources: PacketSources) -> bool:
        """Returns whether no mark depends on links."""
        jobs = {mark.job for mark in plan.marks if mark.is_whole} & sources.jobs
        return self._matches_groups and jobs <= sources.groups.keys()

    def _apply(self, plan: HostPlan, sources: PacketSources) -> None:
        """Mark jobs by cgroup; where the kernel refuses that, by links. Raises IptablesError."""
        if self._matches_groups:
            marks = by_group(plan.all_marks, sources, self._family)
            try:
                self._mark(marks, plan)
            except IptablesError as error:
                if not marks.grouped:
                    raise
                self._apply_refused(plan, sources, error)
            else:
                if marks.grouped:
                    self._groups_again = None
                    self._clear("groups", "packets are matched by their cgroup")
        else:
            self._mark(by_link(plan.all_marks, sources, self._family), plan)

    def _apply_refused(self, plan: HostPlan, sources: PacketSources, error: IptablesError) -> None:
        """Mark jobs after the kernel has refused marks by cgroup, and find out why. Raises IptablesError."""
        present = sources.with_groups(self._is_there)
        is_gone = present != sources
        marks = by_group(plan.all_marks, present, self._family)
        try:
            if not is_gone:
                raise error
            # A cgroup is gone. Discovery learns of that too, within a second.
            self._mark(marks, plan)
            if marks.grouped:
                return
        except IptablesError:
            is_gone = False
            self._mark(by_link(plan.all_marks, sources, self._family), plan)
        # This tests the kernel itself, because a change by another program at the same moment may cause a refusal too.
        why = self.marker.why_no_groups()
        if why is not None:
            self._matches_groups = False
            reason = f"packets are not matched by their cgroup: {why}"
        elif not is_gone:
            self._groups_again = self._groups_again or Pace()
            self._groups_again.repaired(time.monotonic())
            reason = f"this host's packet filter has refused marks by cgroup, which it can match: {error}"
        else:
            return
        self._say("groups", f"{reason}; jobs are marked by the connections that are found")

    def _mark(self, marks: Marks, plan: HostPlan) -> None:
        # No job is marked where the addresses of the family reach nobody.
        outer = self.outer if plan.marks else NO_TUNNELS
        was = self.marker.apply(marks.marks, plan.code_points, outer)
        if was:
            self._repairs.say(was)
        self._say_left_out(marks.left_out)
        self._say_not_cleared(marks.ungrouped if plan.code_points.shared_in_jobs else ())
        self._say_outer()
        self._say_obstacles()

    def _say_obstacles(self) -> None:
        if text := "; ".join(self.marker.obstacles):
            self._say("obstacles", text)
        else:
            self._clear("obstacles", "no rule of somebody else is in the marks' way any more")

    def _say_outer(self) -> None:
        text = self.marker.outer_trouble if self.outer.tunnels else None
        if text is None and self.outer.left_out:
            text = (
                f"tunnels: {self.outer.left_out} addresses of jobs' pods are more than the agent tells apart, so that "
                "their packets leave without a mark; run fewer pods of jobs on this host"
            )
        if text is not None:
            self._say("outer", text)
        else:
            self._clear("outer")

    def _say_left_out(self, count: int) -> None:
        if count:
            self._say(
                "links",
                "jobs without a cgroup of their own have too many connections to mark each; some are other traffic: "
                "run them in cgroups",
            )
        else:
            self._clear("links")

    def _say_not_cleared(self, jobs: Sequence[str]) -> None:
        if jobs:
            self._say(
                "not cleared",
                "a DSCP that these jobs' programs set themselves is not cleared, because other programs use the plan's "
                f"DSCPs, too, and no cgroup tells them apart: {_listed(jobs)}; run them in cgroups",
                logging.INFO,
            )
        else:
            self._clear("not cleared")

    def _say(self, key: str, message: str, level: int = logging.WARNING) -> None:
        where = f"{self._family.name}: " if self._key and self._family.name not in message else ""
        self._notices.say(key + self._key, where + message, level)

    def _clear(self, key: str, message: str | None = None) -> None:
        self._notices.clear(key + self._key, message)


def _listed(jobs: Sequence[str]) -> str:
    more = len(jobs) - _SHOWN_JOBS
    return ", ".join(jobs[:_SHOWN_JOBS]) + (f" and {more} more" if more > 0 else "")


def follow_each_other(filters: Iterable[PacketFilter]) -> None:
    """Tell each filter what the others have changed: nf_tables counts the changes of all families together."""
    markers = [each.marker for each in filters]
    changes = sorted(change for marker in markers if (change := marker.latest_change) is not None)
    for change in changes:
        for marker in markers:
            marker.follow(change)
