"""The changes from the present to the wanted state of TensorLights' part of the NIC's tree. Pure.

A rotation only replaces the filters on the servers' ports, and touches no leaf and no packet in one: a new priority
does nothing for a leaf that is backlogged, while a filter with a new target acts at once. A filter behind these leads
all other traffic to the last band.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from host_reporter.nic.tensorlights.tree import NOTHING, OTHERS_PREF, Filter, Lights, Seen


@dataclass(frozen=True, slots=True)
class PutLeaf:
    """Add a leaf, or set its rates again."""

    leaf: int
    priority: int


@dataclass(frozen=True, slots=True)
class PutBand:
    """Add the leaf of a band with a tree inside, or set the rates of both again. ``adds_tree``: the tree is missing.

    ``jobs`` is the number of leaves inside: the band's guaranteed rate is enough for those of all of them.
    """

    leaf: int
    priority: int
    jobs: int
    adds_tree: bool


@dataclass(frozen=True, slots=True)
class Lead:
    """Lead a port's packets to a leaf: by a change of the filter ``handle``, or by a new filter (None)."""

    port: int
    leaf: int
    handle: int | None


@dataclass(frozen=True, slots=True)
class LeadOthers:
    """Lead all other traffic to the last band."""


@dataclass(frozen=True, slots=True)
class DropFilter:
    """Remove a port's filter."""

    handle: int


@dataclass(frozen=True, slots=True)
class DropFilters:
    """Remove all filters of a preference."""

    pref: int


@dataclass(frozen=True, slots=True)
class DropLeaf:
    """Remove a leaf, with the packets that wait in it, and with the tree inside."""

    leaf: int


@dataclass(frozen=True, slots=True)
class Inside:
    """Carry out a change in the tree inside a leaf."""

    leaf: int
    change: Change


Change = PutLeaf | PutBand | Lead | LeadOthers | DropFilter | DropFilters | DropLeaf | Inside


def changes(wanted: Lights, seen: Seen, *, anew: bool) -> list[Change]:
    """Returns the changes that make ``seen`` equal to ``wanted``, in an order in which no packet is without a leaf.

    A leaf without a filter stays until it is empty. With ``anew`` existing leaves get their rates again. Cost
    O(n log n) for n ports.
    """
    inner = [(minor, tree, seen.inside.get(minor, NOTHING)) for minor, tree in sorted(wanted.inside.items())]
    steps: list[Change] = list(_put(wanted, seen, anew=anew))
    for minor, tree, present in inner:
        steps += [Inside(minor, step) for step in (*_put(tree, present, anew=anew), *_lead(tree, present))]
    steps += _lead(wanted, seen)
    if OTHERS_PREF not in seen.prefs:
        steps.append(LeadOthers())
    steps += _drop_filters(wanted, seen)
    for minor, tree, present in inner:
        steps += [Inside(minor, step) for step in (*_drop_filters(tree, present), *_drop_leaves(tree, present))]
    return [*steps, *_drop_leaves(wanted, seen)]


def removal(seen: Seen) -> list[Change]:
    """Returns the changes that remove our part: the filters first, since a leaf with a filter cannot be removed."""
    steps: list[Change] = [DropFilters(pref) for pref in sorted(seen.prefs)]
    return steps + [DropLeaf(minor) for minor in sorted(seen.backlog)]


def _put(wanted: Lights, seen: Seen, *, anew: bool) -> Iterator[Change]:
    for minor, priority in sorted(wanted.leaves.items()):
        tree, present = wanted.inside.get(minor), seen.inside.get(minor)
        is_there = minor in seen.backlog and not anew
        if tree is None:
            if not is_there:
                yield PutLeaf(minor, priority)
        elif not (is_there and present is not None and tree.leaves.keys() <= present.backlog.keys()):
            yield PutBand(minor, priority, len(tree.leaves), adds_tree=present is None)


def _lead(wanted: Lights, seen: Seen) -> Iterator[Change]:
    of_port = _by_port(wanted, seen)
    for port, minor in sorted(wanted.ports.items()):
        known = of_port.get(port)
        if known is None or known.leaf != minor:
            yield Lead(port, minor, None if known is None else known.handle)


def _drop_filters(wanted: Lights, seen: Seen) -> Iterator[Change]:
    kept = {entry.handle for entry in _by_port(wanted, seen).values()}
    return (DropFilter(handle) for handle in sorted({entry.handle for entry in seen.filters} - kept))


def _drop_leaves(wanted: Lights, seen: Seen) -> Iterator[Change]:
    idle = (minor for minor, waiting in seen.backlog.items() if minor not in wanted.leaves and not waiting)
    return (DropLeaf(minor) for minor in sorted(idle))


def _by_port(wanted: Lights, seen: Seen) -> dict[int, Filter]:
    """Returns the installed filter of each wanted port; of several it is the first."""
    found: dict[int, Filter] = {}
    for entry in sorted(seen.filters, key=lambda entry: entry.handle):
        if entry.port is not None and entry.port in wanted.ports:
            found.setdefault(entry.port, entry)
    return found
