"""The sets of DSCPs: what each of them says, and to whom else."""

from __future__ import annotations

from typing import get_args

import pytest

from controller.code_points import (
    CLASS_SELECTORS,
    DCB,
    POOL_2,
    PRESETS,
    CodePoints,
    Preset,
    code_points,
    is_local,
    precedence,
)
from controller.model import MAX_CLASSES


def test_each_preset_can_be_named() -> None:
    assert get_args(Preset) == tuple(PRESETS)


@pytest.mark.parametrize("points", PRESETS.values())
def test_a_preset_has_a_dscp_for_each_class_and_none_twice(points: CodePoints) -> None:
    assert len(points.classes) == MAX_CLASSES
    assert len(set(points.owned)) == len(points.owned)
    assert all(1 <= dscp <= 63 for dscp in points.owned) and points.other not in points.owned
    falls = [precedence(dscp) for dscp in points.classes]
    assert falls == sorted(falls, reverse=True), "a network that knows the precedence alone turns no two classes round"


def test_points_for_local_use_are_nobody_elses() -> None:
    for points in (POOL_2, DCB):
        assert points.shared == frozenset() and points.exclusive == set(points.owned)
        assert all(map(is_local, points.owned))
    assert [precedence(dscp) for dscp in POOL_2.classes] == [7, 6, 5, 4, 3, 2, 1]


def test_dcb_leaves_the_priorities_of_roce_alone() -> None:
    taken = {precedence(26), precedence(48)}
    assert taken == {3, 6}
    assert not taken & set(map(precedence, DCB.owned))


def test_class_selectors_are_of_others_too() -> None:
    assert CLASS_SELECTORS.classes == tuple(8 * k for k in range(7, 0, -1))
    assert CLASS_SELECTORS.exclusive == frozenset() and CLASS_SELECTORS.shared == set(CLASS_SELECTORS.classes)


def test_packets_without_data_go_first_with_their_own_dscp_or_that_of_class_0() -> None:
    assert (POOL_2.without_data, POOL_2.sure_acknowledgements) == (63, 63)
    assert POOL_2.served()[63] == POOL_2.served()[59] == 0
    assert (CLASS_SELECTORS.without_data, CLASS_SELECTORS.sure_acknowledgements) == (56, None)
    assert len(CLASS_SELECTORS.served()) == MAX_CLASSES
    assert code_points((56,), 46).sure_acknowledgements is None, "a program of the host may set it, too"
    assert code_points((56,), 63).sure_acknowledgements == 63


def test_of_fewer_classes_the_others_dscps_stay_exclusive_and_are_not_served() -> None:
    two = POOL_2.first(2)
    assert two.served() == {59: 0, 51: 1, 63: 0}
    assert two.exclusive == POOL_2.exclusive and two.shared == frozenset()
    assert code_points((59, 8), None).first(1).shared == frozenset()
