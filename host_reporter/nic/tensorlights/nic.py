"""TensorLights at one interface: installs its part of the tree, rotates the jobs, repairs it, and removes it again.

Nothing is installed while fewer than two jobs have a server on this host. A qdisc of another program is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection

from host_reporter.nic import rtnetlink
from host_reporter.nic.errors import foreign
from host_reporter.nic.state import differences, in_front
from host_reporter.nic.tensorlights.bands import Server, Sharing, band_queues, places
from host_reporter.nic.tensorlights.changes import DropFilters, changes, removal
from host_reporter.nic.tensorlights.installed import AGENT, NO_PARTS, Present, present
from host_reporter.nic.tensorlights.tree import (
    INNER_TREES,
    NOTHING,
    OTHERS_PREF,
    PORTS_PREF,
    ROOT,
    lights,
    lights_in_places,
)
from host_reporter.nic.traffic_control.control import TrafficControl


class TensorLightsNic:
    """One interface of ``rate_bps``. Its methods raise NicError. It is not thread-safe.

    ``sharing`` says whether jobs share bands. What a crashed agent has left is adopted or removed, whatever its
    ``sharing`` was.
    """

    def __init__(self, interface: str, rate_bps: float, sharing: Sharing = "shared") -> None:
        self.interface = interface
        self._sharing = sharing
        self._rate_bps = rate_bps
        self._control = TrafficControl(interface)
        self._put_anew = True
        self._served: tuple[tuple[Server, ...], int | None] = (), None
        self._installed = NO_PARTS
        """What the agent had on the interface after the last ``serve``."""
        self.obstacles: tuple[str, ...] = ()
        """Sentences about filters of other programs that see packets before ours, as of the latest look."""

    def serve(self, servers: Collection[Server], turn: int | None) -> bool:
        """Give each server its band at this turn (None: fixed bands). Returns whether any band is installed now."""
        root = self._control.root()
        self._served = tuple(servers), turn
        self._refuse_foreign(root.kind, root.major)
        queues = band_queues(servers, turn)
        if not queues:
            self.remove()
            return False
        major = root.major
        if major == 0:
            self._control.make_root(self._rate_bps)
            major, self._put_anew = ROOT, True
        is_shared = self._sharing == "shared"
        wanted = lights(servers, queues) if is_shared else lights_in_places(servers, queues, places(queues))
        self._control.carry_out(changes(wanted, self._control.seen(major), anew=self._put_anew), major, self._rate_bps)
        self._put_anew = False
        self._installed = self._look().parts()
        return True

    def changed(self) -> tuple[str, ...]:
        """Returns, in words, what differs from the installation. Raises NicError where another program has a qdisc."""
        if self._installed == NO_PARTS:
            return ()
        seen = self._look()
        self._refuse_foreign(seen.root.root.kind, seen.root.root.major)
        return differences(self._installed.together, seen.parts().together)

    def put_back(self) -> None:
        """Install everything again, in place where the tree exists."""
        seen = self._look()
        if seen.root.root.major == ROOT:
            self._control.mend_root(self._rate_bps)
        if seen.is_ours:
            # The kernel cannot change a filter's match in place.
            for major, pref in seen.differing(self._installed):
                self._control.carry_out([DropFilters(pref)], major, self._rate_bps)
        self._put_anew = True
        self.serve(*self._served)

    def remove(self) -> bool:
        """Remove our part, also that of an earlier agent, and restore the qdisc. Returns whether there was any."""
        self._put_anew = True
        self._installed = NO_PARTS
        root = self._control.root()
        if root.major == ROOT:
            self._control.drop_root()
            return True
        if root.major == AGENT and (seen := self._control.seen(AGENT)) != NOTHING:
            self._control.carry_out(removal(seen), AGENT, self._rate_bps)
            return True
        return False

    def _look(self) -> Present:
        inner = (major << 16 for major in INNER_TREES) if self._sharing == "each" else ()
        seen = present(rtnetlink.read(self.interface, ROOT << 16, AGENT << 16, *inner))
        self.obstacles = in_front(self.interface, seen.root, (PORTS_PREF, OTHERS_PREF)) if seen.is_ours else ()
        return seen

    def _refuse_foreign(self, kind: str, major: int) -> None:
        if major not in {0, ROOT, AGENT}:
            raise foreign(self.interface, kind, f"{major:x}:")
