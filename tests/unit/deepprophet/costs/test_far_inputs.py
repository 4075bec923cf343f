"""What inputs that are far from the caches add, told from operators that were measured with them."""

from __future__ import annotations

import pytest

from deepprophet.costs import costs as costing
from deepprophet.costs.measured import SMALL_BYTES, Measurement
from deepprophet.costs.rooflines import rooflines
from deepprophet.graph.graph import Operator
from tests.support.prophet_world import operator, roofline

ONCE, BYTE, NEAR = 20e-6, 1e-11, 50e-6


def of_size(size: int) -> Operator:
    return operator(size=size, bytes=8.0 * size * size)


def test_far_inputs_cost_once_and_for_each_byte() -> None:
    operators = [of_size(size) for size in (128, 200, 300, 500, 900, 1500, 2500)]
    further = {each.key: ONCE + BYTE * each.bytes for each in operators}
    table = {name: Measurement(NEAR, NEAR + more, NEAR, NEAR) for name, more in further.items()}
    # Operators on little find all of it near, and say nothing about those that do not.
    small = [of_size(size) for size in range(8, 60, 4)]
    table |= {each.key: Measurement(1e-6, 1e-6, 1e-6, 1e-6) for each in small}
    (family,) = (each for each in rooflines([*operators, *small], table) if not each.name)
    for size in (160, 700, 3000):
        assert costing.far_seconds(family, of_size(size)) == pytest.approx(ONCE + BYTE * 8 * size * size, rel=0.02)


def test_nothing_is_far_for_an_operator_on_little() -> None:
    known = roofline(far_once=ONCE, far_byte=BYTE)
    assert costing.far_seconds(known, operator(bytes=SMALL_BYTES - 1.0)) == 0.0
    assert costing.far_seconds(known, operator(bytes=float(SMALL_BYTES))) > ONCE


def test_too_few_measured_operators_tell_a_mean_for_each_byte() -> None:
    few = [of_size(size) for size in (200, 400)]
    few += [of_size(size) for size in (8, 12, 16)]
    table = {
        each.key: Measurement(NEAR, NEAR + 1e-10 * each.bytes * (each.bytes >= SMALL_BYTES), NEAR, NEAR) for each in few
    }
    (family,) = rooflines(few, table)
    assert (family.far_once, family.far_byte) == (0.0, pytest.approx(1e-10))
