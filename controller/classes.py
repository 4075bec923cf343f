"""From an ordering to at most K classes, because a switch has few queues.

``top`` [known] is Sincronia's way (SIGCOMM 2018, doi:10.1145/3230543.3230569): the first K - 1 bands have a
class of their own, all others share the last. Cost O(n).

``layered`` [ours]: only jobs that share a port need to differ. A job's layer is the longest chain of jobs before it
in which each shares a port with the next, and is in an earlier band: that is one class for each layer, and no
assignment that keeps all pairs apart has fewer. Where there are more layers than classes, the layers from the K-th on
share the last class: the first K - 1 stay exact, among the assignments of which that is true none has fewer inversions,
and ``top`` never has fewer, for a job's layer is never behind its band. Jobs of one band that share a port, or are
joined by others of it that do, share a class, as a band is meant to: they count as one. Ports are any numbers, so links
do as well. Cost: a few vector operations a job on its ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from controller.loads import Ints
from controller.model import Ordering

Assign = Literal["layered", "top"]
Shared = Mapping[str, Ints]
"""The ports of each job, by number from 0, all different; a job without any conflicts with none."""


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Jobs of one band that share ports, directly or through each other, so they share a class; and those ports."""

    jobs: tuple[str, ...]
    ports: Ints


_Bands = list[list[_Group]]
_Classes = dict[_Group, int]


def top(ordering: Ordering, classes: int) -> dict[str, int]:
    """Class of each job, 0 served first; ``classes`` is K >= 1."""
    _check(classes)
    return {job: min(position, classes - 1) for position, band in enumerate(ordering.bands) for job in band}


def layered(
    ordering: Ordering, classes: int, shared: Shared, previous: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Class of each job, 0 served first; ``classes`` is K >= 1, ``previous`` the classes in force.

    Without ``previous`` as few classes are used as can be. With it, jobs keep their class where that costs no
    inversion: of two greedy passes, from the first band and from the last, the one that moves fewer jobs is taken.
    """
    _check(classes)
    bands = [_groups(band, shared) for band in ordering.bands]
    ports = 1 + max((int(group.ports.max()) for band in bands for group in band if len(group.ports)), default=-1)
    layers = _layers(bands, ports)
    lowest = {group: min(layer, classes - 1) for group, layer in layers.items()}
    candidates = [lowest]
    if previous:
        wanted = {group: _wanted(group, previous) for band in bands for group in band}
        merged = {group for group, layer in layers.items() if layer >= classes - 1}
        highest = _latest(bands, ports, classes, merged=merged, wanted={}, lowest=lowest)
        candidates.insert(0, _earliest(bands, ports, classes, merged=merged, wanted=wanted, highest=highest))
        candidates.insert(1, _latest(bands, ports, classes, merged=merged, wanted=wanted, lowest=lowest))
    found = [{job: its_class for group, its_class in made.items() for job in group.jobs} for made in candidates]
    return min(found, key=lambda made: _moves(made, previous or {}))


def inversions(ordering: Ordering, classes: Mapping[str, int], shared: Shared) -> int:
    """Pairs that share a port, of different bands, of which the later one's class is not behind the earlier one's.

    Cost: a bitwise operation on n bits for each port of a job and class, so pairs are counted, never listed.
    """
    number = {job: i for i, job in enumerate(job for band in ordering.bands for job in band)}
    behind = sorted(set(classes.values()), reverse=True)
    at: dict[tuple[int, int], int] = {}
    found = 0
    for band in ordering.bands:
        rows = [(job, shared[job].tolist()) for job in band]
        for job, ports in rows:
            met = 0
            for its_class in behind:
                if its_class < classes[job]:
                    break
                for port in ports:
                    met |= at.get((port, its_class), 0)
            found += met.bit_count()
        for job, ports in rows:
            for port in ports:
                key = (port, classes[job])
                at[key] = at.get(key, 0) | 1 << number[job]
    return found


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
    return sorted(counts, key=lambda its_class: (-counts[its_class], its_class))


def _layers(bands: _Bands, ports: int) -> _Classes:
    """The longest chain of conflicts before each group."""
    free = np.zeros(ports, dtype=np.int64)  # the first layer that is free at each port
    layers: _Classes = {}
    for band in bands:
        for group in band:
            layers[group] = int(free.take(group.ports).max()) if len(group.ports) else 0
            free[group.ports] = layers[group] + 1
    return layers


def _earliest(
    bands: _Bands,
    ports: int,
    classes: int,
    *,
    merged: set[_Group],
    wanted: Mapping[_Group, Sequence[int]],
    highest: Mapping[_Group, int],
) -> _Classes:
    """From the first band on, each group as it was where all others leave room; else as low as can be."""
    free = np.zeros(ports, dtype=np.int64)
    found: _Classes = {}
    for band in bands:
        for group in band:
            its_class = classes - 1
            if group not in merged:
                low, high = int(free.take(group.ports).max()) if len(group.ports) else 0, highest[group]
                its_class = next((want for want in wanted[group] if low <= want <= high), low)
            found[group] = its_class
            free[group.ports] = its_class + 1
    return found


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
    found: _Classes = {}
    for band in reversed(bands):
        for group in band:
            its_class = classes - 1
            if group not in merged:
                low, high = lowest[group], int(taken.take(group.ports).min()) - 1 if len(group.ports) else classes - 1
                its_class = next((want for want in wanted.get(group, ()) if low <= want <= high), high)
            found[group] = its_class
            taken[group.ports] = its_class
    return found


def _moves(classes: Mapping[str, int], previous: Mapping[str, int]) -> int:
    return sum(1 for job, its_class in classes.items() if previous.get(job, its_class) != its_class)


def _check(classes: int) -> None:
    if classes < 1:
        raise ValueError(f"classes: {classes}; there must be at least 1")


def as_shared(ports: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    """The ports of each job as ``layered`` takes them."""
    return {job: np.unique(np.array(used, dtype=np.int64)) for job, used in ports.items()}
