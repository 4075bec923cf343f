"""Classes: nobody shares a class with, or passes, who goes before at a port while there are enough; else few do."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Ordering
from controller.ordering import classes as classes_module
from controller.ordering.classes import Shared, inversions, layered_and_inversions, top
from tests.support.shared_ports import as_shared

PORTS = st.frozensets(st.integers(0, 7), max_size=3)
JOBS = st.lists(st.tuples(PORTS, st.booleans()), max_size=14)
"""Of each job its ports, and whether it is in the band of the one before it."""


def layered(
    ordering: Ordering, classes: int, shared: Shared, previous: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Returns the classes alone."""
    return layered_and_inversions(ordering, classes, shared, previous)[0]


def instance(jobs: Sequence[tuple[frozenset[int], bool]]) -> tuple[Ordering, dict[str, list[int]]]:
    bands: list[list[str]] = []
    ports = {}
    for i, (used, joins) in enumerate(jobs):
        ports[f"j{i}"] = sorted(used)
        if joins and bands:
            bands[-1].append(f"j{i}")
        else:
            bands.append([f"j{i}"])
    return Ordering("x", tuple(map(tuple, bands)), {}), ports


def inverted(ordering: Ordering, classes: Mapping[str, int], ports: Mapping[str, list[int]]) -> list[tuple[str, str]]:
    """All pairs, one by one."""
    return [
        (first, second)
        for one, other in itertools.combinations(ordering.bands, 2)
        for first in one
        for second in other
        if set(ports[first]) & set(ports[second]) and classes[second] <= classes[first]
    ]


def groups(ordering: Ordering, ports: Mapping[str, list[int]]) -> list[list[set[str]]]:
    """Of each band, the jobs that are joined by ports that they share."""
    found = []
    for band in ordering.bands:
        joined: list[set[str]] = []
        for job in band:
            touched = [one for one in joined if any(set(ports[job]) & set(ports[other]) for other in one)]
            joined = [one for one in joined if one not in touched] + [{job}.union(*touched)]
        found.append(joined)
    return found


def longest_chain(ordering: Ordering, ports: Mapping[str, list[int]]) -> int:
    depth: dict[str, int] = {}
    longest = 0
    for band in groups(ordering, ports):
        layers = [
            max((depth[e] for e in depth for job in group if set(ports[e]) & set(ports[job])), default=0) + 1
            for group in band
        ]
        for group, layer in zip(band, layers, strict=True):
            depth |= dict.fromkeys(group, layer)
            longest = max(longest, layer)
    return longest


def least_of_all_cuts(ordering, classes, ports) -> int:
    """The fewest inversions where each class is some neighbouring layers, whichever these are."""
    layers = layered(ordering, len(ports) + 1, as_shared(ports))
    count = 1 + max(layers.values(), default=-1)
    return min(
        len(inverted(ordering, {job: bisect_right(cuts, layer) for job, layer in layers.items()}, ports))
        for cuts in itertools.combinations(range(1, count), min(classes, count) - 1)
    )


@settings(max_examples=300, deadline=None)
@given(JOBS, st.integers(1, 7), st.data())
def test_no_lower_job_shares_a_class_with_or_passes_a_higher_one_at_its_port_while_there_are_enough(
    jobs, classes, data
) -> None:
    ordering, ports = instance(jobs)
    shared = as_shared(ports)
    chain = longest_chain(ordering, ports)
    previous = data.draw(st.dictionaries(st.sampled_from([f"j{i}" for i in range(16)]), st.integers(0, 8)))
    fresh = layered(ordering, classes, shared)
    kept = layered(ordering, classes, shared, previous)
    for found in (fresh, kept):
        assert set(found) == set(ports)
        assert all(0 <= its_class < classes for its_class in found.values())
        assert all(len({found[job] for job in group}) == 1 for band in groups(ordering, ports) for group in band)
        wrong = inverted(ordering, found, ports)
        assert inversions(ordering, found, shared) == len(wrong)
        before = previous if found is kept else None
        assert layered_and_inversions(ordering, classes, shared, before) == (found, len(wrong))
        if chain <= classes:
            assert not wrong
        else:
            # Nobody passes a job before it, and neither `top` nor any other cut of the layers loses less.
            assert all(found[first] == found[second] for first, second in wrong)
            assert len(wrong) <= len(inverted(ordering, top(ordering, classes), ports))
            assert len(wrong) == least_of_all_cuts(ordering, classes, ports)
    assert len(inverted(ordering, kept, ports)) == len(inverted(ordering, fresh, ports))
    # As few classes as there can be: the longest chain needs one each.
    assert max(fresh.values(), default=-1) + 1 == min(chain, classes)


@settings(max_examples=200, deadline=None)
@given(JOBS, st.integers(1, 4))
def test_where_layers_are_taken_together_first_nobody_passes_and_top_is_not_better(jobs, classes) -> None:
    ordering, ports = instance(jobs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classes_module, "MOST_LAYERS", 6)
        found, count = layered_and_inversions(ordering, classes, as_shared(ports))
    wrong = inverted(ordering, found, ports)
    assert count == len(wrong) <= len(inverted(ordering, top(ordering, classes), ports))
    assert all(found[first] == found[second] for first, second in wrong)


def test_many_jobs_at_one_link_take_no_more_memory_than_a_few() -> None:
    ordering = Ordering("x", tuple((f"j{i}",) for i in range(4000)), {})
    shared = as_shared({f"j{i}": [0, 1] for i in range(4000)})
    tracemalloc.start()
    found, count = layered_and_inversions(ordering, 7, shared)
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()
    sizes = Counter(found.values())
    assert count == sum(size * (size - 1) // 2 for size in sizes.values())
    # Seven equal classes would be best.
    assert count < 1.05 * 7 * (4000 / 7) ** 2 / 2


@settings(max_examples=300, deadline=None)
@given(JOBS, st.integers(1, 7))
def test_the_count_of_inversions_is_that_of_all_pairs_for_any_classes(jobs, classes) -> None:
    ordering, ports = instance(jobs)
    draw = random.Random(len(jobs) * 10 + classes)
    given_classes = {job: draw.randrange(classes) for job in ports}
    wrong = inverted(ordering, given_classes, ports)
    assert inversions(ordering, given_classes, as_shared(ports)) == len(wrong)


@settings(max_examples=300, deadline=None)
@given(JOBS, st.integers(1, 7), st.data())
def test_hysteresis_moves_no_more_jobs_than_starting_anew_and_none_where_nothing_forces_it(jobs, classes, data) -> None:
    ordering, ports = instance(jobs)
    shared = as_shared(ports)
    fresh = layered(ordering, classes, shared)
    previous = data.draw(st.dictionaries(st.sampled_from([f"j{i}" for i in range(16)]), st.integers(0, 6)))

    def moves(found: Mapping[str, int]) -> int:
        return sum(found[job] != previous[job] for job in found if job in previous)

    kept = layered(ordering, classes, shared, previous)
    assert moves(kept) <= moves(fresh)
    assert layered(ordering, classes, shared, kept) == kept
    # Whoever leaves, the others may stay.
    leaving = data.draw(st.sets(st.sampled_from(sorted(ports)))) if ports else set()
    rest = Ordering("x", tuple(tuple(j for j in band if j not in leaving) for band in ordering.bands), {})
    if longest_chain(ordering, ports) <= classes:
        after = layered(rest, classes, shared, kept)
        assert all(after[job] == kept[job] for job in after)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.frozensets(st.integers(0, 3), max_size=2), st.just(False)), max_size=5), st.data())
def test_hysteresis_is_near_the_fewest_moves_of_all_assignments(jobs, data) -> None:
    ordering, ports = instance(jobs)
    shared = as_shared(ports)
    names = sorted(ports)
    previous = {job: data.draw(st.integers(0, 3)) for job in names}
    kept = layered(ordering, 4, shared, previous)
    least = inversions(ordering, kept, shared)
    best = min(
        sum(c != previous[job] for job, c in zip(names, assigned, strict=True))
        for assigned in itertools.product(range(4), repeat=len(names))
        if len(inverted(ordering, dict(zip(names, assigned, strict=True)), ports)) <= least
    )
    # The greedy passes are not exact; on five jobs they are at most two moves off.
    assert sum(kept[job] != previous[job] for job in names) <= best + 2


def test_with_too_few_classes_layered_has_fewer_inversions_than_top_on_average() -> None:
    draw = np.random.default_rng(5)
    ours, tops = 0, 0
    for _ in range(60):
        jobs = [
            (frozenset(draw.choice(24, size=draw.integers(1, 5), replace=False).tolist()), False) for _ in range(60)
        ]
        ordering, ports = instance(jobs)
        shared = as_shared(ports)
        found = [inversions(ordering, made, shared) for made in (layered(ordering, 7, shared), top(ordering, 7))]
        assert found[0] <= found[1]
        ours, tops = ours + found[0], tops + found[1]
    assert 0 < ours < 0.9 * tops


def test_jobs_of_one_band_that_share_ports_share_a_class_and_jobs_without_ports_conflict_with_nobody() -> None:
    ordering = Ordering("x", (("a", "b"), ("c",), ("d",)), {})
    shared = as_shared({"a": [0], "b": [0, 1], "c": [1], "d": []})
    assert layered(ordering, 7, shared) == {"a": 0, "b": 0, "c": 1, "d": 0}
    assert layered(ordering, 7, shared, {"d": 6, "c": 4}) == {"a": 0, "b": 0, "c": 4, "d": 6}
    # To share is what a band means: another class before is no reason for one now.
    assert layered(ordering, 7, shared, {"a": 0, "b": 1, "c": 2}) == {"a": 0, "b": 0, "c": 2, "d": 0}
    # Also where only one of them has somebody before it.
    behind = Ordering("x", (("c",), ("a", "b")), {})
    assert layered(behind, 7, shared) == {"c": 0, "a": 1, "b": 1}
    with pytest.raises(ValueError, match="at least 1"):
        layered(ordering, 0, shared)


@settings(max_examples=100, deadline=None)
@given(
    jobs=st.lists(st.sets(st.integers(0, 8), max_size=4), min_size=3, max_size=30),
    at_once=st.integers(1, 40),
    seed=st.integers(0, 10**6),
)
def test_pairs_are_counted_the_same_however_many_are_looked_at_in_one_go(jobs, at_once, seed) -> None:
    rng = np.random.default_rng(seed)
    ports = {f"j{i}": sorted(used) for i, used in enumerate(jobs)}
    cuts = sorted({0, len(jobs), *rng.integers(0, len(jobs), len(jobs) // 2).tolist()})
    bands = tuple(tuple(f"j{i}" for i in range(a, b)) for a, b in itertools.pairwise(cuts))
    ordering = Ordering("x", bands, {})
    layer_of = {job: int(rng.integers(0, 4)) for job in ports}
    before = {job: int(rng.integers(0, 3)) for job in ports}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classes_module, "_MOST_PAIRS", at_once)
        met, together = classes_module._conflicts(ordering, as_shared(ports), layer_of, 4, before)
    expected, same = np.zeros((4, 4)), 0
    for earlier, later in itertools.combinations(bands, 2):
        for a, b in itertools.product(earlier, later):
            if set(ports[a]) & set(ports[b]):
                expected[layer_of[a], layer_of[b]] += 1
                same += before[a] == before[b]
    assert met.tolist() == expected.tolist()
    assert together == same
