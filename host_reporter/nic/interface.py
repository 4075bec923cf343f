"""The host's network interface: makes, adopts, changes, mends and takes away the tree of ``host_reporter.nic.tree``."""

from __future__ import annotations

from collections.abc import Sequence

from controller.model import ACKNOWLEDGEMENT_DSCP
from host_reporter import tools
from host_reporter.nic import rtnetlink
from host_reporter.nic.errors import NicError, foreign
from host_reporter.nic.guard import NicGuard
from host_reporter.nic.state import Installed, NicState, differences, in_front, parts, state
from host_reporter.nic.tensorlights_tree import ROOT, is_leaf
from host_reporter.nic.tree import (
    ARP_PREF,
    DSCP_PREF,
    HANDLE,
    MADE,
    OTHER_LEAF,
    arp_filter,
    arp_removal,
    filter_removal,
    htb_parts,
    htb_tree,
    is_part,
    leaf,
    signature,
    surplus_leaves,
)

__all__ = ["HANDLE", "Nic", "NicError", "htb_tree"]

_MAJOR = int(HANDLE, 16)
_PLACES = (DSCP_PREF, ARP_PREF)

_Wanted = tuple[float, tuple[int, ...], float, float]


class Nic:
    """One managed interface. ``rate_bps`` of None: as the plan says. Not for several threads."""

    def __init__(self, interface: str, rate_bps: float | None) -> None:
        self.interface = interface
        self._rate_bps = rate_bps
        self._made = False
        self._guard = NicGuard(interface)
        self._wanted: _Wanted | None = None
        self._installed: Installed | None = None
        """What the interface had right after the tree was last put there; None: it could not be."""
        self.obstacles: tuple[str, ...] = ()
        """Filters of somebody else that see packets before the tree's, as of the latest look, in sentences."""

    def apply(
        self, link_bps: float, class_dscp: Sequence[int], class_floor: float, other_floor: float
    ) -> tuple[str, ...]:
        """Serve the classes so. Returns what somebody else had changed and is put back, in words. Raises NicError.

        A tree of ours that is there is adopted, and changed in place; someone else's qdisc is left as it is. What was
        made before is believed to be still there: ``changed`` looks.
        """
        wanted = (self._rate_bps or link_bps, tuple(class_dscp), class_floor, other_floor)
        if wanted == self._wanted and self._installed is not None:
            return ()
        seen = self._look()
        was = () if self._installed is None else differences(self._installed, self._parts(seen))
        self._wanted = wanted
        self._put(seen, wanted)
        return was

    def changed(self) -> tuple[str, ...]:
        """Returns what is no longer as it was installed, in words. Raises NicError: someone else has ordered it."""
        if self._wanted is None:
            return ()
        seen = self._look()
        self._refuse_foreign(seen)
        if self._installed is None:
            return ("it was not in place",)
        return differences(self._installed, self._parts(seen))

    def put_back(self) -> None:
        """Install the whole tree anew, in place where it is there. Raises NicError."""
        if self._wanted is not None:
            self._put(self._look(), self._wanted)

    def watch(self) -> None:
        """Have the tree taken away too if this process is killed. Raises NicError."""
        if self._made:
            self._guard.watch()

    def remove(self) -> None:
        """Give the interface back to the kernel's default if an agent made the tree. Raises NicError.

        What somebody else has put in its place meanwhile stays.
        """
        self._wanted = self._installed = None
        if self._made:
            self._made = False
            try:
                if self._look().root.major == _MAJOR:
                    self._tc("qdisc", "del", "dev", self.interface, "root")
            finally:
                self._guard.dismiss()

    def remove_left(self) -> bool:
        """Take away the tree of an agent that was killed. Returns whether there was one. Raises NicError."""
        seen = self._look()
        if seen.root.major != _MAJOR or MADE not in seen.classes:
            return False
        self._tc("qdisc", "del", "dev", self.interface, "root")
        return True

    def _put(self, seen: NicState, wanted: _Wanted) -> None:
        """Make what is there equal to what is wanted, and remember what that looks like."""
        if self._installed is None:
            seen = self._without_lights(seen)
        self._installed = None
        try:
            if seen.root.major == _MAJOR:
                self._mend(seen, wanted)
            else:
                self._refuse_foreign(seen)
                self._build(wanted)
        except ValueError as error:
            raise NicError(f"{self.interface}: {error}") from error
        self._installed = self._parts(self._look())

    def _mend(self, seen: NicState, wanted: _Wanted) -> None:
        if seen.root.kind != "htb" or seen.root.default != OTHER_LEAF:
            raise NicError(f"{self.interface} has a qdisc {HANDLE}: that is not as this agent makes it; remove it")
        # By an agent before this one, which was killed.
        self._made |= MADE in seen.classes
        kept, removals = self._sorted_out(seen, wanted[1])
        arp = [entry for entry in seen.filters if entry.pref == ARP_PREF]
        arp_is_right = [entry.leaf for entry in arp] == [leaf(0)]
        lines = [
            *removals,
            *([arp_removal(self.interface)] if arp and not arp_is_right else []),
            *htb_parts(self.interface, *wanted, tables=kept),
            *([] if arp_is_right else [arp_filter(self.interface)]),
            *surplus_leaves(self.interface, wanted[1], seen.classes),
            *([signature(self.interface)] if self._made else []),
        ]
        self._batch(lines)

    def _sorted_out(self, seen: NicState, class_dscp: Sequence[int]) -> tuple[dict[int, int], list[str]]:
        """The hash tables of the filters by DSCP that can stay, and lines that take away those that cannot."""
        kept, removals = {}, []
        wanted = {*class_dscp, ACKNOWLEDGEMENT_DSCP}
        for entry in sorted(seen.filters):
            if entry.pref != DSCP_PREF:
                continue
            # What a filter matches cannot be changed, only where it leads.
            if entry.number in wanted and entry.name == f"DSCP {entry.number}":
                kept[entry.number] = entry.table
            else:
                removals.append(filter_removal(self.interface, entry.table, entry.number))
        return kept, removals

    def _build(self, wanted: _Wanted) -> None:
        try:
            self._batch([*htb_tree(self.interface, *wanted), signature(self.interface)])
        except NicError:
            if self._look().root.major == _MAJOR:
                self._tc("qdisc", "del", "dev", self.interface, "root")
            raise
        self._made = True

    def _refuse_foreign(self, seen: NicState) -> None:
        if seen.root.major not in {0, _MAJOR}:
            self._installed = None
            raise foreign(self.interface, seen.root.kind, f"{seen.root.major:x}:")

    def _without_lights(self, seen: NicState) -> NicState:
        """What is there, after what TensorLights left was taken away: its agent was killed."""
        if seen.root.major == ROOT or (seen.root.major == _MAJOR and any(map(is_leaf, seen.classes))):
            from host_reporter.nic.tensorlights_nic import TensorLightsNic  # noqa: PLC0415 - seldom needed

            TensorLightsNic(self.interface, 0.0).remove()
            return self._look()
        return seen

    def _look(self) -> NicState:
        seen = state(rtnetlink.read(self.interface, _MAJOR << 16))
        self.obstacles = in_front(self.interface, seen, _PLACES) if seen.root.major == _MAJOR else ()
        return seen

    @staticmethod
    def _parts(seen: NicState) -> Installed:
        return parts(seen, classes=is_part, prefs=_PLACES) if seen.root.major == _MAJOR else {}

    def _batch(self, lines: Sequence[str]) -> None:
        self._tc("-batch", "-", text="\n".join(lines) + "\n")

    def _tc(self, *arguments: str, text: str = "") -> str:
        try:
            return tools.run(["tc", *arguments], text, package="iproute2")
        except tools.ToolError as error:
            raise NicError(f"{self.interface}: {error}") from error
