"""What TensorLights has on an interface, tree by tree, for the comparison with what is there later. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from host_reporter.nic.filters import ARP_PREF
from host_reporter.nic.rtnetlink import Entry
from host_reporter.nic.state import Installed, NicState, inside, parts, state
from host_reporter.nic.tensorlights.tree import INNER_TREES, OTHERS_PREF, PORTS_PREF, ROOT, is_leaf
from host_reporter.nic.tree import HANDLE

AGENT = int(HANDLE, 16)
"""The root of a tree by DSCP, which ``host_reporter.nic.interface`` or the testbed has built. TensorLights adds its
leaves to it.
"""


class Parts(NamedTuple):
    """Our parts: classes with their queues and trees, and the filters of each tree, by the tree's major number."""

    classes: Installed
    filters: Mapping[int, Installed]

    @property
    def together(self) -> Installed:
        """All parts by their names, which differ."""
        return dict(self.classes) | {name: content for tree in self.filters.values() for name, content in tree.items()}


NO_PARTS = Parts({}, {})


class Present(NamedTuple):
    """An interface's present state: the tree at its root, and those inside our leaves by their major numbers."""

    root: NicState
    inside: Mapping[int, NicState]

    @property
    def is_ours(self) -> bool:
        """Whether we have built the tree at the root, or may add to it."""
        return self.root.root.major in {ROOT, AGENT}

    def parts(self) -> Parts:
        """Returns our parts; in a tree that TensorLights has built, all are ours."""
        if not self.is_ours:
            return NO_PARTS
        is_own = self.root.root.major == ROOT
        classes = parts(self.root, classes=lambda minor: is_own or is_leaf(minor), prefs=(), root=is_own)
        prefs = (PORTS_PREF, OTHERS_PREF, *((ARP_PREF,) if is_own else ()))
        filters = {self.root.root.major: _filters(self.root, prefs)}
        for major, tree in self.inside.items():
            classes |= parts(tree, classes=lambda _minor: True, prefs=(), root=False)
            filters[major] = _filters(tree, (PORTS_PREF,), f" in {major:x}:")
        return Parts(classes, filters)

    def differing(self, installed: Parts) -> list[tuple[int, int]]:
        """Returns the trees whose filters are not the installed ones, and the preferences of ours that they have."""
        ours, found = self.parts().filters, []
        for major, tree in ((self.root.root.major, self.root), *self.inside.items()):
            if ours.get(major, {}) != installed.filters.get(major, {}):
                present = {entry.pref for entry in tree.filters} & {PORTS_PREF, OTHERS_PREF}
                found += [(major, pref) for pref in sorted(present)]
        return found


def present(entries: Collection[Entry]) -> Present:
    """Returns the state that an interface's entries say."""
    trees = ((major, inside(entries, major)) for major in INNER_TREES)
    return Present(state(entries), {major: tree for major, tree in trees if tree.root.major})


def _filters(tree: NicState, prefs: Collection[int], where: str = "") -> Installed:
    return parts(tree, classes=lambda _minor: False, prefs=prefs, root=False, where=where)
