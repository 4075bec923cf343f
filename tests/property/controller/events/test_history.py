"""The rings of samples against a dictionary of all samples, and their sums and last values over longer steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.events.history import last, steps, total
from controller.events.rings import SET_BACK_SLOTS, Rings

SLOTS, MOST = 6, 3
VALUES = st.floats(0, 1000, width=32)
SAMPLES = st.dictionaries(st.sampled_from("abcdef"), VALUES, max_size=5)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 9), SAMPLES), max_size=25), st.integers(-8, 60), st.integers(1, 12))
def test_each_sample_that_is_kept_is_read_where_it_was_taken(
    writes: list[tuple[int, dict[str, float]]], first: int, count: int
) -> None:
    rings = Rings(1, MOST, slots=SLOTS)
    expected: dict[tuple[str, int], float] = {}
    newest: int | None = None
    for later, samples in writes:
        slot = (20 if newest is None else newest) + later
        left_out = rings.write(slot, {name: (value,) for name, value in samples.items()})
        if newest is not None and newest - SET_BACK_SLOTS < slot <= newest:
            assert rings.newest == newest
            continue
        expected = {(name, at): value for (name, at), value in expected.items() if at < slot}
        newest = slot
        kept = [name for name in samples if name in rings]
        assert left_out == len(samples) - len(kept) == max(len(samples) - MOST, 0)
        expected |= {(name, slot): samples[name] for name in kept}
        expected = {
            (name, at): value for (name, at), value in expected.items() if name in rings and at > newest - SLOTS
        }
        assert len(rings.names()) <= MOST
    for name in "abcdef":
        found = rings.read(name, first, count)
        assert found.shape == (count, 1)
        for number, value in enumerate(found[:, 0].tolist()):
            wanted = expected.get((name, first + number), math.nan)
            assert value == wanted or (math.isnan(value) and math.isnan(wanted))


@given(
    st.lists(st.lists(VALUES | st.just(math.nan), min_size=12, max_size=12), min_size=1, max_size=3),
    st.sampled_from([1, 2, 3, 6]),
)
def test_a_longer_step_has_the_sum_and_the_last_of_its_samples(fields: list[list[float]], step: int) -> None:
    values = np.array(fields, dtype=np.float32).T
    sums, lasts = total(steps(values, step)), last(steps(values, step))
    for field in range(len(fields)):
        for number in range(12 // step):
            there = [v for v in values[number * step : (number + 1) * step, field].tolist() if not math.isnan(v)]
            if there:
                assert math.isclose(sums[number, field], sum(there), rel_tol=1e-5)
                assert lasts[number, field] == there[-1]
            else:
                assert math.isnan(sums[number, field]) and math.isnan(lasts[number, field])


@pytest.mark.parametrize("back", [2, 3, SLOTS - 1, SLOTS, 10 * SLOTS])
def test_after_a_clock_was_set_back_what_was_before_is_there_and_new_samples_are_taken(back: int) -> None:
    rings = Rings(1, MOST, slots=SLOTS)
    for slot in range(90, 101):
        rings.write(slot, {"a": (float(slot),), **({"b": (1.0,)} if slot > 98 else {})})
    rings.write(100 - back, {"c": (7.0,)})
    assert rings.newest == 100 - back
    kept = [float(slot) for slot in range(100 - SLOTS + 1, 100 - back)]
    found = rings.read("a", 100 - SLOTS + 1, SLOTS)[:, 0]
    assert found[np.isfinite(found)].tolist() == kept
    assert set(rings.names()) == {"c", *(["a"] if kept else [])}
    assert rings.read("c", 100 - back, 1).tolist() == [[7.0]]
    rings.write(100 - back + 1, {"c": (8.0,)})
    assert rings.read("c", 100 - back, 2).tolist() == [[7.0], [8.0]]


def test_the_memory_grows_with_the_names_up_to_a_bound() -> None:
    rings = Rings(2, 64, slots=SLOTS)
    small = rings.nbytes
    for slot in range(200):
        rings.write(slot, {f"n{slot}-{k}": (1.0, 2.0) for k in range(80)})
    assert small < rings.nbytes == 64 * 2 * SLOTS * 4
