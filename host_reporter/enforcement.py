"""Makes the host equal to its plan: marks, and the interface's tree. What is not permitted here is said once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controller.wire import HostPlan
from host_reporter.iptables import IptablesError, Marker
from host_reporter.marking import Sent
from host_reporter.nic import Nic, NicError
from host_reporter.notices import Notices


class Enforcement:
    """The host's side of the plan. No method raises; each part goes on without the other. For one thread.

    ``marker``, ``nic`` of None: that part is left alone.
    """

    def __init__(self, marker: Marker | None, nic: Nic | None, notices: Notices) -> None:
        self._marker = marker
        self._nic = nic
        self._notices = notices

    def apply(self, plan: HostPlan, *, look: bool = True) -> bool:
        """Serve and mark as the plan says; whether all of it was done. ``look``: whether what is there is looked at."""
        done = True
        if self._nic is not None:
            try:
                # The classes first: marked packets must find their queues.
                self._nic.apply(plan.egress_bps, plan.class_dscp, plan.class_floor, plan.other_floor, look=look)
                self._notices.clear("nic", f"{self._nic.interface} serves the classes")
            except NicError as error:
                done = False
                self._notices.say("nic", f"this host's interface does not order its traffic: {error}")
        try:
            if self._marker is not None:
                self._marker.apply(plan.marks)
            self._notices.clear("marks", "traffic is marked")
        except IptablesError as error:
            done = False
            self._notices.say("marks", f"this host's traffic is not marked: {error}")
        return done

    def sent_bytes(self) -> Mapping[str, Sent]:
        """Bytes that left, by job."""
        try:
            return self._marker.sent_bytes() if self._marker is not None else {}
        except IptablesError as error:
            self._notices.say("marks", f"marked bytes cannot be counted: {error}")
            return {}

    @property
    def is_marking(self) -> bool:
        """Whether there are bytes to count, and rules to look after."""
        return self._marker is not None and self._marker.is_marking

    def open(self) -> None:
        """Take the marks away: all traffic is served alike, and no program takes a class for itself meanwhile."""
        self._unmark(lambda marker: marker.open())

    def remove(self) -> None:
        """Take away all that was made."""
        self._unmark(lambda marker: marker.remove())
        if self._nic is not None:
            try:
                self._nic.remove()
            except NicError as error:
                self._notices.say("nic", f"the tree cannot be taken away: {error}")

    def _unmark(self, how: Callable[[Marker], None]) -> None:
        try:
            if self._marker is not None:
                how(self._marker)
        except IptablesError as error:
            self._notices.say("marks", f"the marks cannot be taken away: {error}")
