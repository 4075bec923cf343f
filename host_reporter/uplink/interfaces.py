"""What is to be reported of the host's interfaces, and whether the controller takes it. Uses no clock of its own."""

from __future__ import annotations

from controller.wire import InterfaceTraffic

AGAIN_SECONDS = 600.0
"""After a controller has refused a report with interfaces, try again after this time: it may be another one then."""

Interfaces = tuple[InterfaceTraffic, ...]


class InterfaceNews:
    """The latest that is known of all interfaces, until the controller has it. Times are of any monotonic clock."""

    def __init__(self) -> None:
        self._latest: Interfaces | None = None
        self._taken: Interfaces | None = None
        self._not_before = float("-inf")

    def note(self, interfaces: Interfaces) -> bool:
        """Note what is known now. Returns whether it must not wait: what is said of an interface has changed."""
        before, self._latest = self._latest, interfaces
        return _said(before or ()) != _said(interfaces)

    def due(self, now: float) -> Interfaces | None:
        """Returns what the next report should have of it; None: nothing, since there is no news or it is not taken."""
        return self._latest if self.are_taken(now) and self._latest != self._taken else None

    def are_taken(self, now: float) -> bool:
        """Returns whether the controller takes fields that reports have had only lately, as far as is known."""
        return now >= self._not_before

    def taken(self, reported: Interfaces | None) -> None:
        """A report was accepted that had this."""
        self._taken = reported if reported is not None else self._taken

    def refused(self, now: float) -> None:
        """A report with such fields was refused, as an older controller does."""
        self._not_before = now + AGAIN_SECONDS


def _said(interfaces: Interfaces) -> set[tuple[str, float | None, float | None]]:
    said = {(each.interface, each.unseen_sent_rate, each.unseen_received_rate) for each in interfaces}
    return {each for each in said if each[1:] != (None, None)}
