"""Assigns the jobs of an ordering to at most K classes, because a switch has few queues.

``top`` [known] is Sincronia's method (SIGCOMM 2018, doi:10.1145/3230543.3230569): the first K - 1 bands have a
class of their own, and all others share the last. Cost O(n).

``layered`` [ours] gives different classes only to jobs that share a port. A job's layer is the length of the longest
chain of jobs before it in which each shares a port with the next, and stands in an earlier band. With one class for
each layer all such pairs are kept apart, and no assignment that does so has fewer classes. Where there are more layers
than classes, neighbouring layers share a class. A dynamic program chooses the cuts so that as few pairs as possible are
not kept apart; such a pair is an inversion. ``top`` never has fewer inversions, because a job's layer is never behind
its band, and its cut is one of those that the program compares. Jobs of one band that share a port, directly or through
other jobs of the band, share a class and count as one. Ports are numbers, so links between switches work as well.
Cost: a few vector operations on each job's ports, and K L^2 more for L layers and K classes, where L is at most
MOST_LAYERS: if there are more layers, neighbouring layers far behind are joined first.
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
    """Jobs of one band that share a class, because they share ports directly or through each other; and those ports.

    It never changes, but is not frozen: a plan has one for each job, and frozen objects are slow to create.
    """

    jobs: tuple[str, ...]
    ports: Ints


MOST_LAYERS = 256
"""Choose the cuts between at most this many layers; jobs that all share one link have a layer each."""

_MOST_PAIRS = 2**20
"""Compare this many pairs of jobs at once, so that the arrays stay small; a pair counts once for each shared port."""

_Bands = list[list[_Group]]
_Classes = dict[_Group, int]


def top(ordering: Ordering, classes: int) -> dict[str, int]:
    """Returns the class of each job, 0 served first; ``classes`` is K >= 1. Raises ValueError."""
    _check(classes)
    return {job: min(position, classes - 1) for position, band in enumerate(ordering.bands) for job in band}


def layered_and_inversions(
    ordering: Ordering, classes: int, shared: Shared, previous: Mapping[str, int] | None = None
) -> tuple[dict[str, int], int]:
    """Returns the class of each job, 0 served first, and the inversions, which the cut has counted anyway.

    ``classes`` is K >= 1, ``previous`` the classes in force. Without ``previous``, as few classes are used as possible.
    With it, jobs keep their class where that costs no inversion: of equally good cuts, and then of two greedy passes,
    from the first band and from the last, the one that moves fewer jobs is taken. Raises ValueError for less than one
    class.
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
        group_of = _layer_groups(count, classes)
        layer_of = {job: group_of[layer] for group, layer in layers.items() for job in group.jobs}
        count = group_of[-1] + 1
        before = _classes_in_force(bands, ports, classes, previous or {})
        conflicts, together = _conflicts(ordering, shared, layer_of, count, before or {})
        cut = _cut(conflicts, classes, _jobs_by_class(layer_of, count, classes, previous))
        inverted = int(conflicts[np.equal.outer(cut, cut)].sum())
        if before is not None and together == inverted:
            return before, inverted
        class_of = [cut[group] for group in group_of]
    lowest = {group: class_of[layer] for group, layer in layers.items()}
    candidates = [lowest]
    if previous:
        several = {group_class for group_class, held in Counter(class_of).items() if held > 1}
        merged = {group for group, group_class in lowest.items() if group_class in several}
        wanted = {group: _classes_now(group, previous) for band in bands for group in band if group not in merged}
        highest = _latest(bands, ports, classes, merged=merged, wanted={}, lowest=lowest)
        candidates.insert(0, _earliest(bands, ports, merged=merged, wanted=wanted, lowest=lowest, highest=highest))
        candidates.insert(1, _latest(bands, ports, classes, merged=merged, wanted=wanted, lowest=lowest))
    assignments = [
        {job: group_class for group, group_class in assignment.items() for job in group.jobs}
        for assignment in candidates
    ]
    return min(assignments, key=lambda assignment: _moves(assignment, previous or {})), inverted


def inversions(ordering: Ordering, classes: Mapping[str, int], shared: Shared) -> int:
    """Returns the number of pairs of different bands that share a port, and whose later job is not in a later class.

    Cost: a bitwise operation on n bits for each port of a job and each class, so pairs are counted, and never listed.
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
    """Returns the jobs of a band in groups that have no port in common."""
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
            smaller = held.pop(other)
            if len(smaller) > len(ports):
                ports, smaller = smaller, ports
            ports |= smaller
        members[number], held[number] = jobs, ports
        at.update(dict.fromkeys(ports, number))
    return [_Group(tuple(jobs), np.array(sorted(held[number]), dtype=np.int64)) for number, jobs in members.items()]


def _classes_now(group: _Group, previous: Mapping[str, int]) -> list[int]:
    """Returns the classes that the jobs of a group have now, the class of most jobs first."""
    if len(group.jobs) == 1:
        return [previous[group.jobs[0]]] if group.jobs[0] in previous else []
    counts = Counter(previous[job] for job in group.jobs if job in previous)
    return sorted(counts, key=lambda service_class: (-counts[service_class], service_class))


def _layers(bands: _Bands, ports: int) -> _Classes:
    """Returns the length of the longest chain of conflicts before each group."""
    free = np.zeros(ports, dtype=np.int64)  # the first layer that is free at each port
    layers: _Classes = {}
    for band in bands:
        for group in band:
            layers[group] = int(np.maximum.reduce(free.take(group.ports))) if len(group.ports) else 0
            free[group.ports] = layers[group] + 1
    return layers


def _layer_groups(layers: int, classes: int) -> list[int]:
    """Returns the group of each layer. If there are many layers, only the first K have a group each, as in ``top``."""
    rest = MOST_LAYERS - classes
    if layers <= MOST_LAYERS or rest < 1:
        return list(range(layers))
    return [*range(classes), *(classes + i * rest // (layers - classes) for i in range(layers - classes))]


def _conflicts(
    ordering: Ordering, shared: Shared, layer_of: Mapping[str, int], layers: int, before: Mapping[str, int]
) -> tuple[Floats, int]:
    """Returns how many pairs of jobs of different bands share a port, by the layers of the two jobs, (L, L).

    Also returns how many of these pairs share a class in ``before``. A product of sparse matrices finds the pairs. It
    takes only so many jobs at a time that their pairs stay few.
    """
    order = [job for band in ordering.bands for job in band]
    layer = np.array([layer_of[job] for job in order])
    class_before = np.array([before.get(job, -1) for job in order])
    band_of = np.repeat(np.arange(len(ordering.bands)), [len(band) for band in ordering.bands])
    start = np.concatenate(([0], np.cumsum([len(shared[job]) for job in order])))
    ports = np.concatenate([shared[job] for job in order])
    width = 1 + int(ports.max(initial=-1))
    users = csr_array((np.ones(len(ports), dtype=np.int32), ports, start), shape=(len(order), width))
    # A job has at most as many pairs as its ports have users, each user counted at each port.
    most = np.concatenate(([0], np.cumsum(np.bincount(ports, minlength=width)[ports])))[start]
    count_by_layers = np.zeros(layers * layers, dtype=np.int64)
    together = 0
    first = 0
    while first < len(order):
        end = max(int(np.searchsorted(most, most[first] + _MOST_PAIRS, side="right")) - 1, first + 1)
        product = users[first:end] @ users[:end].T.tocsr()
        later, earlier = np.repeat(np.arange(first, end), np.diff(product.indptr)), product.indices
        apart = band_of[earlier] < band_of[later]
        later, earlier = later[apart], earlier[apart]
        count_by_layers += np.bincount(layer[earlier] * layers + layer[later], minlength=layers * layers)
        together += int(np.count_nonzero(class_before[earlier] == class_before[later]))
        first = end
    return count_by_layers.reshape(layers, layers).astype(float), together


def _jobs_by_class(
    layer_of: Mapping[str, int], layers: int, classes: int, previous: Mapping[str, int] | None
) -> Floats:
    """Returns how many jobs of each layer are in each class in force, (L, K)."""
    before = {} if previous is None else previous
    known = [(layer, before.get(job, -1)) for job, layer in layer_of.items()]
    cells = [layer * classes + service_class for layer, service_class in known if 0 <= service_class < classes]
    return np.bincount(cells, minlength=layers * classes).reshape(layers, classes).astype(float)


def _classes_in_force(bands: _Bands, ports: int, classes: int, previous: Mapping[str, int]) -> dict[str, int] | None:
    """Returns the classes in force; None if a job has none, a group has several, or a job overtakes an earlier one."""
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


def _cut(conflicts: Floats, classes: int, held: Floats) -> list[int]:
    """Returns the class of each layer, never less than that of the layer before, for the fewest inversions.

    ``conflicts`` (L, L) are those of ``_conflicts``. Of equally good cuts the one is taken that moves the fewest of the
    jobs ``held`` (L, K), which are those of ``_jobs_by_class``.
    """
    layers = len(conflicts)
    pairs = np.zeros((layers + 1, layers + 1))
    pairs[1:, 1:] = conflicts.cumsum(axis=0).cumsum(axis=1)
    total = np.diagonal(pairs)
    # Row a and column b have the cost of layers a to b - 1 in one class; b before a is impossible.
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
    """Assigns from the first band on: each group keeps its class where that leaves room; else it gets the lowest."""
    free = np.zeros(ports, dtype=np.int64)
    assigned: _Classes = {}
    for band in bands:
        for group in band:
            group_class = lowest[group]
            if group not in merged:
                low, high = int(np.maximum.reduce(free.take(group.ports))) if len(group.ports) else 0, highest[group]
                group_class = next(
                    (service_class for service_class in wanted[group] if low <= service_class <= high), low
                )
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
    """Assigns from the last band on: each group keeps its class where that leaves room; else it gets the highest."""
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
                group_class = next(
                    (service_class for service_class in wanted.get(group, ()) if low <= service_class <= high), high
                )
            assigned[group] = group_class
            taken[group.ports] = group_class
    return assigned


def _moves(classes: Mapping[str, int], previous: Mapping[str, int]) -> int:
    """Returns how many jobs get another class than they had."""
    return sum(1 for job, new_class in classes.items() if previous.get(job, new_class) != new_class)


def _check(classes: int) -> None:
    if classes < 1:
        raise ValueError(f"classes: {classes}; there must be at least 1")
