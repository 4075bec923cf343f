"""From an ordering to at most K classes, because a switch has few queues.

``top`` [known] is Sincronia's way (SIGCOMM 2018, doi:10.1145/3230543.3230569): the first K - 1 bands have a
class of their own, all others share the last. Cost O(n).

``layered`` [ours]: only jobs that share a port need to differ. A job's layer is the longest chain of jobs before it
in which each shares a port with the next, and is in an earlier band: that is one class for each layer, and no
assignment that keeps all pairs apart has fewer. Where there are more layers than classes, neighbouring layers share
one, so that as few pairs as can be are not kept apart: a dynamic program over where to cut. ``top`` never has fewer
such inversions, for a job's layer is never behind its band, and its cut is one of those gone through. Jobs of one band
that share a port, or are joined by others of it that do, share a class, as a band is meant to: they count as one. Ports
are any numbers, so links do as well. Cost: a few vector operations a job on its ports; with L layers for K classes
K L^2 more, where L counts no more than MOST_LAYERS: of more than that, neighbours far behind are taken together first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from controller.model import Ordering
from controller.ordering.loads import Floats, Ints

Assign = Literal["layered", "top"]
Shared = Mapping[str, Ints]
"""The ports of each job, numbered from 0, each once; a job without ports conflicts with no job."""


@dataclass(slots=True, eq=False)
class _Group:
    """Jobs of one band that share ports, directly or through each other, so they share a class; and those ports.

    Not frozen, though never changed: there is one for each job of a plan, and a frozen one is slow to make.
    """

    jobs: tuple[str, ...]
    ports: Ints


MOST_LAYERS = 256
"""Look for the cuts between at most this many layers; jobs that all meet at one link have a layer each."""

_MOST_PAIRS = 2**20
"""Compare this many pairs of jobs at once, so that their arrays stay small; a pair counts once for each shared port."""

_Bands = list[list[_Group]]
_Classes = dict[_Group, int]


def top(ordering: Ordering, classes: int) -> dict[str, int]:
    """Class of each job, 0 served first; ``classes`` is K >= 1."""
    _check(classes)
    return {job: min(position, classes - 1) for position, band in enumerate(ordering.bands) for job in band}


def layered_and_inversions(
    ordering: Ordering, classes: int, shared: Shared, previous: Mapping[str, int] | None = None
) -> tuple[dict[str, int], int]:
    """Returns the class of each job, 0 served first, and the inversions, which the cut has counted anyway.

    ``classes`` is K >= 1, ``previous`` the classes in force. Without ``previous`` as few classes are used as can be.
    With it, jobs keep their class where that costs no inversion: of equally good cuts, and then of two greedy passes,
    from the first band and from the last, the one that moves fewer jobs is taken.
    """
    _check(classes)
    bands = [_groups(band, shared) for band in ordering.bands]
    crossed = [group.ports for band in bands for group in band]
    ports = 1 + (int(np.concatenate(crossed).max(initial=-1)) if crossed else -1)
    layers = _layers(bands, ports)
    count = 1 + max(layers.values(), default=-1)
    class_of: Sequence[int] = range(count)
    inverted = 0
    if count > classes:
        coarse = _coarse(count, classes)
        layer_of = {job: coarse[layer] for group, layer in layers.items() for job in group.jobs}
        count = coarse[-1] + 1
        before = _as_before(bands, ports, classes, previous or {})
        met, together = _met(ordering, shared, layer_of, count, before or {})
        cut = _cut(met, classes, _held(layer_of, count, classes, previous))
        inverted = int(met[np.equal.outer(cut, cut)].sum())
        if before is not None and together == inverted:
            return before, inverted
        class_of = [cut[group] for group in coarse]
    lowest = {group: class_of[layer] for group, layer in layers.items()}
    candidates = [lowest]
    if previous:
        several = {group_class for group_class, held in Counter(class_of).items() if held > 1}
        merged = {group for group, group_class in lowest.items() if group_class in several}
        wanted = {group: _wanted(group, previous) for band in bands for group in band if group not in merged}
        highest = _latest(bands, ports, classes, merged=merged, wanted={}, lowest=lowest)
        candidates.insert(0, _earliest(bands, ports, merged=merged, wanted=wanted, lowest=lowest, highest=highest))
        candidates.insert(1, _latest(bands, ports, classes, merged=merged, wanted=wanted, lowest=lowest))
    assignments = [
        {job: group_class for group, group_class in assignment.items() for job in group.jobs}
        for assignment in candidates
    ]
    return min(assignments, key=lambda assignment: _moves(assignment, previous or {})), inverted


def inversions(ordering: Ordering, classes: Mapping[str, int], shared: Shared) -> int:
    """Pairs that share a port, of different bands, of which the later one's class is not behind the earlier one's.

    Cost: a bitwise operation on n bits for each port of a job and class, so pairs are counted, never listed.
    """
    number = {job: i for i, job in enumerate(job for band in ordering.bands for job in band)}
    behind = sorted(set(classes.values()), reverse=True)
    at: dict[tuple[int, int], int] = {}
    count = 0
    for band in ordering.bands:
        rows = [(job, shared[job].tolist()) for job in band]
        for job, ports in rows:
            met = 0
            for earlier_class in behind:
                if earlier_class < classes[job]:
                    break
                for port in ports:
                    met |= at.get((port, earlier_class), 0)
            count += met.bit_count()
        for job, ports in rows:
            for port in ports:
                key = (port, classes[job])
                at[key] = at.get(key, 0) | 1 << number[job]
    return count


def _groups(band: Sequence[str], shared: Shared) -> list[_Group]:
    """The jobs of a band in groups that have no port in common."""
    if len(band) == 1:
        return [_Group((band[0],), shared[band[0]])]
    at: dict[int, int] = {}  # the group of each port
    members: dict[int, list[str]] = {}
    held: dict[int, set[int]] = {}
    for number, job in enumerate(band):
        ports = set(shared[job].tolist())
        jobs = [job]
        for other in {at[port] for port in ports if port in at}:
            # The smaller joins the larger, so that no port is moved more than log n times.
            jobs += members.pop(other)
            theirs = held.pop(other)
            ports, theirs = (ports, theirs) if len(ports) >= len(theirs) else (theirs, ports)
            ports |= theirs
        members[number], held[number] = jobs, ports
        at.update(dict.fromkeys(ports, number))
    return [_Group(tuple(jobs), np.array(sorted(held[number]), dtype=np.int64)) for number, jobs in members.items()]


def _wanted(group: _Group, previous: Mapping[str, int]) -> list[int]:
    """The classes that the jobs of a group have now, those of most first."""
    if len(group.jobs) == 1:
        return [previous[group.jobs[0]]] if group.jobs[0] in previous else []
    counts = Counter(previous[job] for job in group.jobs if job in previous)
    return sorted(counts, key=lambda service_class: (-counts[service_class], service_class))


def _layers(bands: _Bands, ports: int) -> _Classes:
    """The longest chain of conflicts before each group."""
    free = np.zeros(ports, dtype=np.int64)  # the first layer that is free at each port
    layers: _Classes = {}
    for band in bands:
        for group in band:
            layers[group] = int(np.maximum.reduce(free.take(group.ports))) if len(group.ports) else 0
            free[group.ports] = layers[group] + 1
    return layers


def _coarse(layers: int, classes: int) -> list[int]:
    """The group of each layer: its own while there are few; else the first K stay alone, as ``top`` leaves them."""
    rest = MOST_LAYERS - classes
    if layers <= MOST_LAYERS or rest < 1:
        return list(range(layers))
    return [*range(classes), *(classes + i * rest // (layers - classes) for i in range(layers - classes))]


def _met(
    ordering: Ordering, shared: Shared, layer_of: Mapping[str, int], layers: int, before: Mapping[str, int]
) -> tuple[Floats, int]:
    """How many pairs of jobs of different bands share a port, by the layers of the earlier and the later, (L, L).

    And how many of these are together in the classes ``before``. Pairs are found by a product of sparse matrices, as
    many jobs at a time as keeps the pairs of one time few.
    """
    order = [job for band in ordering.bands for job in band]
    layer = np.array([layer_of[job] for job in order])
    class_before = np.array([before.get(job, -1) for job in order])
    band_of = np.repeat(np.arange(len(ordering.bands)), [len(band) for band in ordering.bands])
    start = np.concatenate(([0], np.cumsum([len(shared[job]) for job in order])))
    ports = np.concatenate([shared[job] for job in order])
    width = 1 + int(ports.max(initial=-1))
    users = csr_array((np.ones(len(ports), dtype=np.int32), ports, start), shape=(len(order), width))
    # No job meets more than all that use its ports, each counted at each port.
    most = np.concatenate(([0], np.cumsum(np.bincount(ports, minlength=width)[ports])))[start]
    met_by = np.zeros(layers * layers, dtype=np.int64)
    together = 0
    first = 0
    while first < len(order):
        end = max(int(np.searchsorted(most, most[first] + _MOST_PAIRS, side="right")) - 1, first + 1)
        product = users[first:end] @ users[:end].T.tocsr()
        later, earlier = np.repeat(np.arange(first, end), np.diff(product.indptr)), product.indices
        apart = band_of[earlier] < band_of[later]
        later, earlier = later[apart], earlier[apart]
        met_by += np.bincount(layer[earlier] * layers + layer[later], minlength=layers * layers)
        together += int(np.count_nonzero(class_before[earlier] == class_before[later]))
        first = end
    return met_by.reshape(layers, layers).astype(float), together


def _held(layer_of: Mapping[str, int], layers: int, classes: int, previous: Mapping[str, int] | None) -> Floats:
    """How many jobs of each layer have a class already, by class, (L, K)."""
    before = {} if previous is None else previous
    known = [(layer, before.get(job, -1)) for job, layer in layer_of.items()]
    cells = [layer * classes + service_class for layer, service_class in known if 0 <= service_class < classes]
    return np.bincount(cells, minlength=layers * classes).reshape(layers, classes).astype(float)


def _as_before(bands: _Bands, ports: int, classes: int, previous: Mapping[str, int]) -> dict[str, int] | None:
    """The classes in force, where all have one, bands share theirs, and none passes one before it; else None."""
    behind = np.zeros(ports, dtype=np.int64)  # the last class at each port of the bands so far
    assigned: dict[str, int] = {}
    for band in bands:
        for group in band:
            held = {previous.get(job, -1) for job in group.jobs}
            group_class = held.pop()
            if held or not 0 <= group_class < classes or (len(group.ports) and group_class < behind[group.ports].max()):
                return None
            assigned |= dict.fromkeys(group.jobs, group_class)
            behind[group.ports] = group_class
    return assigned


def _cut(met: Floats, classes: int, held: Floats) -> list[int]:
    """The class of each layer, never less than that of the layer before, for the fewest inversions.

    ``met`` (L, L) as ``_met`` gives it; of equally good cuts the one that moves the fewest of the jobs ``held`` (L, K).
    """
    layers = len(met)
    pairs = np.zeros((layers + 1, layers + 1))
    pairs[1:, 1:] = met.cumsum(axis=0).cumsum(axis=1)
    total = np.diagonal(pairs)
    # In row a and column b what layers a to b - 1 in one class cost; no class takes b before a.
    cost = total[:, None] + total[None, :] - pairs - pairs.T
    cost[np.tril_indices(layers + 1, -1)] = np.inf
    cost *= held.sum() + 1  # an inversion weighs more than all moves together
    moved = np.zeros((classes, layers + 1))
    moved[:, 1:] = (held.sum(axis=1, keepdims=True) - held).cumsum(axis=0).T
    best = np.full(layers + 1, np.inf)
    best[0] = 0.0
    begins = []
    for class_moved in moved:
        reached = (best - class_moved)[:, None] + cost
        begins.append(reached.argmin(axis=0))
        best = reached.min(axis=0) + class_moved
    class_of = [0] * layers
    end = layers
    for service_class in range(classes - 1, -1, -1):
        begin = int(begins[service_class][end])
        class_of[begin:end] = [service_class] * (end - begin)
        end = begin
    return class_of


def _earliest(
    bands: _Bands,
    ports: int,
    *,
    merged: set[_Group],
    wanted: Mapping[_Group, Sequence[int]],
    lowest: Mapping[_Group, int],
    highest: Mapping[_Group, int],
) -> _Classes:
    """From the first band on, each group as it was where all others leave room; else as low as can be."""
    free = np.zeros(ports, dtype=np.int64)
    assigned: _Classes = {}
    for band in bands:
        for group in band:
            group_class = lowest[group]
            if group not in merged:
                low, high = int(np.maximum.reduce(free.take(group.ports))) if len(group.ports) else 0, highest[group]
                group_class = next((want for want in wanted[group] if low <= want <= high), low)
            assigned[group] = group_class
            free[group.ports] = group_class + 1
    return assigned


def _latest(
    bands: _Bands,
    ports: int,
    classes: int,
    *,
    merged: set[_Group],
    wanted: Mapping[_Group, Sequence[int]],
    lowest: Mapping[_Group, int],
) -> _Classes:
    """From the last band on, each group as it was where that leaves room for all; else as high as can be."""
    taken = np.full(ports, classes, dtype=np.int64)  # the first class that is taken at each port, seen from behind
    assigned: _Classes = {}
    for band in reversed(bands):
        for group in band:
            group_class = lowest[group]
            if group not in merged:
                low, high = (
                    group_class,
                    int(np.minimum.reduce(taken.take(group.ports))) - 1 if len(group.ports) else classes - 1,
                )
                group_class = next((want for want in wanted.get(group, ()) if low <= want <= high), high)
            assigned[group] = group_class
            taken[group.ports] = group_class
    return assigned


def _moves(classes: Mapping[str, int], previous: Mapping[str, int]) -> int:
    return sum(1 for job, new_class in classes.items() if previous.get(job, new_class) != new_class)


def _check(classes: int) -> None:
    if classes < 1:
        raise ValueError(f"classes: {classes}; there must be at least 1")
