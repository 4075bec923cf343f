"""TensorLights at one interface: installs its part of the tree, rotates the jobs, repairs it, and removes it again.

Nothing is installed while fewer than two jobs have a server on this host. A qdisc of another program is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection

from host_reporter.nic import rtnetlink
from host_reporter.nic.errors import foreign
from host_reporter.nic.state import Installed, NicState, differences, in_front, parts, state
from host_reporter.nic.tensorlights import Server, band_queues
from host_reporter.nic.tensorlights_tree import (
    NOTHING,
    OTHERS_PREF,
    PORTS_PREF,
    ROOT,
    DropFilters,
    changes,
    is_leaf,
    lights,
    removal,
)
from host_reporter.nic.traffic_control import TrafficControl
from host_reporter.nic.tree import ARP_PREF, HANDLE

_AGENT = int(HANDLE, 16)
"""The root of a tree by DSCP, which ``host_reporter.nic.interface`` or the testbed has built. TensorLights adds its
leaves to it.
"""


class TensorLightsNic:
    """One interface of ``rate_bps``. Its methods raise NicError. It is not thread-safe.

    What a crashed agent has left is adopted or removed.
    """

    def __init__(self, interface: str, rate_bps: float) -> None:
        self.interface = interface
        self._rate_bps = rate_bps
        self._control = TrafficControl(interface)
        self._put_anew = True
        self._served: tuple[tuple[Server, ...], int | None] = (), None
        self._classes: Installed = {}
        self._filters: Installed = {}
        """What the agent had on the interface after the last ``serve``: the leaves, their queues and the tree's own
        parts in ``_classes``, and the filters in ``_filters``.
        """
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
        wanted = lights(servers, queues)
        self._control.carry_out(changes(wanted, self._control.seen(major), anew=self._put_anew), major, self._rate_bps)
        self._put_anew = False
        self._classes, self._filters = _ours(self._look())
        return True

    def changed(self) -> tuple[str, ...]:
        """Returns, in words, what differs from the installation. Raises NicError where another program has a qdisc."""
        if not self._filters:
            return ()
        seen = self._look()
        self._refuse_foreign(seen.root.kind, seen.root.major)
        classes, filters = _ours(seen)
        return differences({**self._classes, **self._filters}, {**classes, **filters})

    def put_back(self) -> None:
        """Install everything again, in place where the tree exists."""
        seen = self._look()
        major = seen.root.major
        if major == ROOT:
            self._control.mend_root(self._rate_bps)
        if major in {ROOT, _AGENT} and _ours(seen)[1] != self._filters:
            # The kernel cannot change a filter's match in place.
            present = sorted({entry.pref for entry in seen.filters} & {PORTS_PREF, OTHERS_PREF})
            self._control.carry_out([DropFilters(pref) for pref in present], major, self._rate_bps)
        self._put_anew = True
        self.serve(*self._served)

    def remove(self) -> bool:
        """Remove our part, also that of an earlier agent, and restore the qdisc. Returns whether there was any."""
        self._put_anew = True
        self._classes, self._filters = {}, {}
        root = self._control.root()
        if root.major == ROOT:
            self._control.drop_root()
            return True
        if root.major == _AGENT and (seen := self._control.seen(_AGENT)) != NOTHING:
            self._control.carry_out(removal(seen), _AGENT, self._rate_bps)
            return True
        return False

    def _look(self) -> NicState:
        entries = rtnetlink.read(self.interface, ROOT << 16, _AGENT << 16)
        seen = state(entries)
        is_ours = seen.root.major in {ROOT, _AGENT}
        self.obstacles = in_front(self.interface, seen, (PORTS_PREF, OTHERS_PREF)) if is_ours else ()
        return seen

    def _refuse_foreign(self, kind: str, major: int) -> None:
        if major not in {0, ROOT, _AGENT}:
            raise foreign(self.interface, kind, f"{major:x}:")


def _ours(seen: NicState) -> tuple[Installed, Installed]:
    """Returns our classes with their queues, and our filters; in a tree that TensorLights built, all are ours."""
    if seen.root.major not in {ROOT, _AGENT}:
        return {}, {}
    is_own = seen.root.major == ROOT
    prefs = (PORTS_PREF, OTHERS_PREF, *((ARP_PREF,) if is_own else ()))
    classes = parts(seen, classes=lambda minor: is_own or is_leaf(minor), prefs=(), root=is_own)
    return classes, parts(seen, classes=lambda _minor: False, prefs=prefs, root=False)
