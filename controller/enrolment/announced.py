"""Where hosts have announced themselves last, against where they are known to be. Pure.

A host that announces itself proves where it is: only it knows its announcement, and no bridge forwards the frame. So
a port that was found in this way follows a host to another cable. A port that an operator has said stays, and the
operator is told.
"""

from __future__ import annotations

from controller.enrolment.record import Enrolment, Seat, Site


class Announced:
    """The latest announcement of each interface, and why one was not moved to where it announces itself."""

    def __init__(self) -> None:
        self._sites: dict[Seat, Site] = {}
        self._misplaced: dict[Seat, str] = {}

    def note(self, seat: Seat, site: Site) -> None:
        """An interface has announced itself at a port. What was said of it before counts no more."""
        self._sites[seat] = site
        self._misplaced.pop(seat, None)

    def say(self, seat: Seat, problem: str) -> None:
        """Note why an interface was not moved to where it has announced itself last."""
        self._misplaced[seat] = problem

    def forget(self, name: str) -> None:
        """A host was removed, or an operator has decided anew where it is."""
        self._sites = {seat: site for seat, site in self._sites.items() if seat.host != name}
        self._misplaced = {seat: problem for seat, problem in self._misplaced.items() if seat.host != name}

    def problems(self, name: str) -> list[str]:
        """Returns why interfaces of a host were not moved to where they announce themselves; none: all were."""
        return [problem for seat, problem in sorted(self._misplaced.items()) if seat.host == name]

    @property
    def misplaced(self) -> list[Seat]:
        """The interfaces that announce themselves elsewhere than they are known to be, in alphabetical order."""
        return sorted(self._misplaced)

    def site(self, seat: Seat) -> Site | None:
        """Returns where an interface has announced itself last; None: it has not since the controller began."""
        return self._sites.get(seat)

    def has_left(self, host: Enrolment, site: Site) -> bool:
        """Returns whether the interface of a host at this port has announced itself elsewhere: the port is free."""
        link = host.link_at(site)
        if link is None or link.mac is None or link.found_by != "announcement":
            return False
        return self._sites.get(Seat(host.name, link.mac)) not in (None, site)
