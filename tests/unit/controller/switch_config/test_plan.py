"""Queues from DSCPs and floors, and what no static configuration can serve."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from controller.code_points import CLASS_SELECTORS, DCB, POOL_2, PRESETS, CodePoints, code_points, precedence
from controller.switch_config.plan import (
    ROCE,
    Lossless,
    PlanError,
    Queue,
    plan_queues,
    strict_and_weighted,
    whole_percents,
)

FLOORS = {"class_floor": 0.01, "other_floor": 0.1}


def plain(points: CodePoints) -> tuple[Queue, ...]:
    return plan_queues(points, **FLOORS, lossless=None)


def beside_roce(points: CodePoints) -> tuple[Queue, ...]:
    return plan_queues(points, **FLOORS, lossless=ROCE)


@pytest.mark.parametrize("points", PRESETS.values(), ids=PRESETS)
def test_each_class_has_a_queue_of_its_own_and_other_traffic_the_last(points: CodePoints) -> None:
    queues = plain(points)
    assert [queue.number for queue in queues] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert [queue.classes for queue in queues] == [(0,), (1,), (2,), (3,), (4,), (5,), (6,), ()]
    assert {dscp: queue.classes[0] for queue in queues for dscp in queue.dscps} == points.served()
    assert [queue.floor for queue in queues] == [0.01] * 7 + [0.1]


def test_few_classes_have_the_queues_that_are_served_first() -> None:
    assert [(queue.number, queue.dscps) for queue in plain(POOL_2.first(2))] == [(7, (59, 63)), (6, (51,)), (0, ())]


def test_beside_roce_queues_follow_the_upper_three_bits() -> None:
    queues = beside_roce(DCB)
    assert {queue.number: queue.dscps for queue in queues if queue.dscps} == {
        7: (59, 63), 6: (48,), 5: (43, 47), 4: (35, 39), 3: (26,), 2: (19,), 1: (11,),
    }  # fmt: skip
    assert all(precedence(dscp) == queue.number for queue in queues for dscp in queue.dscps)
    assert [queue.number for queue in queues] == sorted((queue.number for queue in queues), reverse=True)


def test_classes_that_share_a_queue_keep_what_both_would() -> None:
    floors = {queue.number: queue.floor for queue in beside_roce(DCB)}
    assert floors == {7: 0.01, 6: 0.01, 5: 0.02, 4: 0.02, 3: 0.1, 2: 0.01, 1: 0.01, 0: 0.1}


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        (POOL_2, r"class 1 has DSCP 51, in priority 6 of RoCE's congestion notifications"),
        (code_points((59, 27), None), "class 1 has DSCP 27, in priority 3 of RoCE;"),
        (code_points((59, 3), None), "class 1 has DSCP 3, in priority 0 of other traffic"),
        (code_points((11, 59), None), "class 1 has priority 7, above class 0 with 1"),
        (code_points((47, 43), 63), "acknowledgements: DSCP 63 is not in priority 5 of class 0"),
        (code_points((59,), None, 26), "dscp.other: DSCP 26 is RoCE's"),
        (CLASS_SELECTORS, "class 1 has DSCP 48"),
    ],
)
def test_dscps_that_would_share_roces_queue_are_refused(points: CodePoints, sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence) as refused:
        beside_roce(points)
    assert "\n" not in str(refused.value)


def test_floors_of_more_than_a_link_are_refused() -> None:
    with pytest.raises(PlanError, match=r"take 1\.08 of a link; at most 1"):
        plan_queues(DCB, class_floor=0.01, other_floor=0.5, lossless=ROCE)


def test_a_lossless_queue_starves_on_no_switch() -> None:
    """Where strict queues have no floor, RoCE and all below it have weights."""
    strict, weights = strict_and_weighted(beside_roce(DCB))
    assert [queue.number for queue in strict] == [7, 6, 5, 4]
    assert list(weights) == [3, 2, 1, 0]
    assert sum(weights.values()) == 100
    assert weights[3] > weights[2] > weights[1] > weights[0] > 0


def test_without_a_lossless_queue_all_but_other_traffic_is_strict() -> None:
    strict, weights = strict_and_weighted(plain(POOL_2))
    assert (len(strict), weights) == (7, {0: 100})


@pytest.mark.parametrize(
    ("floors", "percents"),
    [
        ((0, 0.001, 0.01, 0.011, 0.14), [1, 1, 1, 2, 14]),
        ((0.125,) * 8, [12, 12, 12, 12, 13, 13, 13, 13]),
        ((0.001, 0.001, 0.998), [1, 1, 98]),
        ((0.28, 0.72), [28, 72]),
    ],
)
def test_whole_percents_are_rounded_up_as_far_as_the_link_goes(floors: Sequence[float], percents: list[int]) -> None:
    queues = [Queue(number, "jobs", (), floor) for number, floor in enumerate(floors)]
    assert list(whole_percents(queues).values()) == percents


def test_the_priority_of_pfc_is_that_of_roces_dscp() -> None:
    assert (ROCE.priority, Lossless(34, 48).priority) == (3, 4)
