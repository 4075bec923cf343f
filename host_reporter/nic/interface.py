"""The host's network interface: builds, adopts, changes, repairs and removes the tree of ``host_reporter.nic.tree``."""

from __future__ import annotations

from collections.abc import Sequence

from controller.code_points import CodePoints
from host_reporter import tools
from host_reporter.nic import rtnetlink
from host_reporter.nic.errors import NicError, foreign
from host_reporter.nic.filter_changes import changes
from host_reporter.nic.filters import ARP_PREF, PREFS, of_plan, words
from host_reporter.nic.guard import NicGuard
from host_reporter.nic.state import Installed, NicState, differences, in_front, parts, state
from host_reporter.nic.tensorlights.tree import ROOT, is_leaf
from host_reporter.nic.tree import (
    HANDLE,
    OTHER_LEAF,
    SIGNATURE_CLASS,
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

_Wanted = tuple[float, CodePoints, float, float]


class Nic:
    """One managed interface. Where ``rate_bps`` is None, the plan gives the rate. It is not thread-safe."""

    def __init__(self, interface: str, rate_bps: float | None) -> None:
        self.interface = interface
        self._rate_bps = rate_bps
        self._is_tree_ours = False
        self._guard = NicGuard(interface)
        self._wanted: _Wanted | None = None
        self._installed: Installed | None = None
        """What the interface had right after the last installation; None where that failed."""
        self.obstacles: tuple[str, ...] = ()
        """Sentences about filters of other programs that see packets before the tree's, as of the latest look."""

    def apply(self, link_bps: float, points: CodePoints, class_floor: float, other_floor: float) -> tuple[str, ...]:
        """Serve the classes in this way. Returns, in words, what others had changed and is repaired. Raises NicError.

        An existing tree of an agent is adopted and changed in place. A qdisc of another program is left as it is. Where
        the arguments are the same as before, nothing is read: ``changed`` looks whether the tree is still there.
        """
        wanted = (self._rate_bps or link_bps, points, class_floor, other_floor)
        if wanted == self._wanted and self._installed is not None:
            return ()
        seen = self._look()
        was = () if self._installed is None else differences(self._installed, self._parts(seen))
        before, self._wanted = self._wanted, wanted
        if self._installed is not None and not was and before is not None and _has_same_leaves(before, wanted):
            self._change_filters(seen, points)
        else:
            self._put(seen, wanted)
        return was

    def changed(self) -> tuple[str, ...]:
        """Returns, in words, what differs from the installation. Raises NicError where another program has a qdisc."""
        if self._wanted is None:
            return ()
        seen = self._look()
        self._refuse_foreign(seen)
        if self._installed is None:
            return ("the tree was not in place",)
        return differences(self._installed, self._parts(seen))

    def put_back(self) -> None:
        """Install the whole tree again, in place where it exists. Raises NicError."""
        if self._wanted is not None:
            self._put(self._look(), self._wanted)

    def watch(self) -> None:
        """Make the guard remove the tree if this process is killed. Raises NicError."""
        if self._is_tree_ours:
            self._guard.watch()

    def remove(self) -> None:
        """Restore the kernel's default qdisc if an agent built the tree. Raises NicError.

        A qdisc that another program has put in its place meanwhile stays.
        """
        self._wanted = self._installed = None
        if self._is_tree_ours:
            self._is_tree_ours = False
            try:
                if self._look().root.major == _MAJOR:
                    self._tc("qdisc", "del", "dev", self.interface, "root")
            finally:
                self._guard.dismiss()

    def remove_left(self) -> bool:
        """Remove the tree of an agent that was killed. Returns whether such a tree was there. Raises NicError."""
        seen = self._look()
        if seen.root.major != _MAJOR or SIGNATURE_CLASS not in seen.classes:
            return False
        self._tc("qdisc", "del", "dev", self.interface, "root")
        return True

    def _put(self, seen: NicState, wanted: _Wanted) -> None:
        """Make the installed tree equal to ``wanted``, and read it back."""
        if self._installed is None:
            seen = self._without_tensorlights(seen)
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

    def _change_filters(self, seen: NicState, points: CodePoints) -> None:
        """Lead other DSCPs, or the same ones elsewhere, in the installed tree."""
        self._installed = None
        rtnetlink.change(self.interface, changes(seen.filters.keys(), points))
        self._installed = self._parts(self._look())

    def _mend(self, seen: NicState, wanted: _Wanted) -> None:
        if seen.root.kind != "htb" or seen.root.default != OTHER_LEAF:
            raise NicError(f"{self.interface} has a qdisc {HANDLE}: that is not as this agent makes it; remove it")
        # An earlier agent that was killed may have built the tree.
        self._is_tree_ours |= SIGNATURE_CLASS in seen.classes
        kept, removals = self._sorted_out(seen, wanted[1])
        arp = [entry for entry in seen.filters if entry.pref == ARP_PREF]
        arp_is_right = [entry.leaf for entry in arp] == [leaf(0)]
        lines = [
            *removals,
            *([arp_removal(self.interface)] if arp and not arp_is_right else []),
            *htb_parts(self.interface, *wanted, tables=kept),
            *([] if arp_is_right else [arp_filter(self.interface)]),
            *surplus_leaves(self.interface, len(wanted[1].classes), seen.classes),
            *([signature(self.interface)] if self._is_tree_ours else []),
        ]
        self._batch(lines)

    def _sorted_out(self, seen: NicState, points: CodePoints) -> tuple[dict[tuple[int, int], int], list[str]]:
        """Returns the hash tables of the filters that can stay, and lines that remove the others, except ARP's."""
        names = {wanted[:2]: words(wanted.keys) for wanted in of_plan(points)}
        kept, removals = {}, []
        for entry in sorted(seen.filters):
            if entry.pref == ARP_PREF or entry.pref not in PREFS:
                continue
            # The kernel can change a filter's target but not its match.
            place = (entry.pref, entry.number)
            if names.get(place) == entry.name:
                kept[place] = entry.table
            else:
                removals.append(filter_removal(self.interface, entry.pref, entry.table, entry.number))
        return kept, removals

    def _build(self, wanted: _Wanted) -> None:
        try:
            self._batch([*htb_tree(self.interface, *wanted), signature(self.interface)])
        except NicError:
            if self._look().root.major == _MAJOR:
                self._tc("qdisc", "del", "dev", self.interface, "root")
            raise
        self._is_tree_ours = True

    def _refuse_foreign(self, seen: NicState) -> None:
        if seen.root.major not in {0, _MAJOR}:
            self._installed = None
            raise foreign(self.interface, seen.root.kind, f"{seen.root.major:x}:")

    def _without_tensorlights(self, seen: NicState) -> NicState:
        """Remove what a killed agent with TensorLights has left. Returns the state after that."""
        if seen.root.major == ROOT or (seen.root.major == _MAJOR and any(map(is_leaf, seen.classes))):
            from host_reporter.nic.tensorlights.nic import TensorLightsNic  # noqa: PLC0415 - it loads pyroute2, which is seldom needed

            TensorLightsNic(self.interface, 0.0).remove()
            return self._look()
        return seen

    def _look(self) -> NicState:
        seen = state(rtnetlink.read(self.interface, _MAJOR << 16))
        self.obstacles = in_front(self.interface, seen, PREFS) if seen.root.major == _MAJOR else ()
        return seen

    @staticmethod
    def _parts(seen: NicState) -> Installed:
        return parts(seen, classes=is_part, prefs=PREFS) if seen.root.major == _MAJOR else {}

    def _batch(self, lines: Sequence[str]) -> None:
        self._tc("-batch", "-", text="\n".join(lines) + "\n")

    def _tc(self, *arguments: str, text: str = "") -> str:
        try:
            return tools.run(["tc", *arguments], text, package="iproute2")
        except tools.ToolError as error:
            raise NicError(f"{self.interface}: {error}") from error


def _has_same_leaves(before: _Wanted, after: _Wanted) -> bool:
    """Returns whether two trees differ at most in their filters."""
    leaves = [(rate_bps, len(points.classes), *floors) for rate_bps, points, *floors in (before, after)]
    return leaves[0] == leaves[1]
