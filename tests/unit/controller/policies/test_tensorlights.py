"""What the policies of TensorLights order by, and how they rotate."""

from __future__ import annotations

import pytest

from controller.model import Demand, Job, Role, Task
from controller.policies.base import OptionError
from controller.policies.tensorlights_one import TensorLightsOne
from controller.policies.tensorlights_rr import TensorLightsRr
from tests.support.controller.small_snapshots import HOSTS, ids, job, snapshot


def ps_job(name: str, host: str = "h1", size: float = 1e6, **more) -> Job:
    others = [other for other in HOSTS if other != host][:3]
    return Job(
        name,
        tuple(Demand(host, other, size) for other in others) + tuple(Demand(other, host, size) for other in others),
        tasks=(Task(Role.PS, host), *(Task(Role.WORKER, other) for other in others)),
        **more,
    )


def test_tensorlights_one_fills_seven_bands_by_launch_order() -> None:
    jobs = [ps_job(f"j{i:02}", arrival=float(i)) for i in range(20)]
    ordering = TensorLightsOne().order(snapshot(*jobs, job("ring", 1.0, "h1", "h3")), None)
    assert [len(band) for band in ordering.bands] == [3] * 6 + [2, 1]
    assert ordering.bands[0] == ("j00", "j01", "j02")
    assert ordering.bands[-1] == ("ring",)
    assert "number 4 of 20 there (smaller models first, then by launch)" in ordering.reasons["j03"]


def test_tensorlights_looks_at_one_host_where_it_is_named() -> None:
    jobs = (ps_job("a"), ps_job("b"), ps_job("c", "h2"))
    # The pushes of c's worker on h1 are all else there.
    assert TensorLightsOne(host="h1").order(snapshot(*jobs), None).bands == (("a",), ("b",), ("c",))
    # A server that is alone on its host needs no order.
    assert TensorLightsOne(host="h2").order(snapshot(*jobs), None).bands == (("a", "b", "c"),)


def test_tensorlights_orders_each_host_for_itself() -> None:
    jobs = (ps_job("a"), ps_job("b"), ps_job("c", "h2"), ps_job("d", "h2"), ps_job("lone", "h4"))
    ordering = TensorLightsOne().order(snapshot(*jobs, job("ring", 1.0, "h4", "h3")), None)
    assert ordering.bands == (("a", "c", "lone", "ring"), ("b", "d"))
    assert "not held back" in ordering.reasons["ring"]


def test_tensorlights_finds_a_fan_out_where_no_tasks_are_declared() -> None:
    fan = [Job(name, (Demand("h1", "h2", 1e6), Demand("h1", "h3", 1e6))) for name in "ab"]
    assert TensorLightsOne().order(snapshot(*fan, job("c")), None).bands == (("a",), ("b",), ("c",))


def test_tensorlights_puts_smaller_models_first_and_rotates_among_equals() -> None:
    jobs = (ps_job("big", size=9e6), ps_job("s1", arrival=1.0), ps_job("s2", arrival=2.0), ps_job("s3", arrival=3.0))
    policy = TensorLightsRr()
    turns = [ids(policy.order(snapshot(*jobs, now=now), None)) for now in (0.0, 19.9, 20.0, 40.0, 60.0)]
    assert turns == [
        ["s1", "s2", "s3", "big"],
        ["s1", "s2", "s3", "big"],
        ["s3", "s1", "s2", "big"],
        ["s2", "s3", "s1", "big"],
        ["s1", "s2", "s3", "big"],
    ]
    assert ids(TensorLightsOne().order(snapshot(*jobs, now=20.0), None)) == ["s1", "s2", "s3", "big"]


@pytest.mark.parametrize("count", [2, 3, 7, 8, 20, 21])
def test_in_a_rotation_every_job_holds_every_band(count) -> None:
    jobs = [ps_job(f"j{i:02}", arrival=float(i)) for i in range(count)]
    held: dict[str, set[int]] = {job.id: set() for job in jobs}
    for turn in range(count):
        ordering = TensorLightsRr().order(snapshot(*jobs, now=20.0 * turn + 1), None)
        for number, band in enumerate(ordering.bands):
            for name in band:
                held[name].add(number)
    assert all(bands == set(range(len(ordering.bands))) for bands in held.values())


def test_tensorlights_for_a_host_that_is_not_there_is_refused() -> None:
    with pytest.raises(OptionError, match=r"host: there is no host 'h99'; there are: h1, h2, h3, h4, h5$"):
        TensorLightsOne(host="h99").order(snapshot(ps_job("a")), None)


def test_in_a_rotation_of_mixed_models_every_job_holds_every_place_among_its_equals() -> None:
    sizes = (1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0)  # bands of two, and the pair stands across two of them
    jobs = [ps_job(f"j{i}", arrival=float(i), size=size * 1e6) for i, size in enumerate(sizes)]
    held: dict[str, set[int]] = {job.id: set() for job in jobs}
    for turn in range(40):
        ordering = TensorLightsRr().order(snapshot(*jobs, now=20.0 * turn + 1), None)
        for number, band in enumerate(ordering.bands):
            for name in band:
                held[name].add(number)
    assert held["j0"] == {0}
    assert held["j1"] == held["j2"] == {0, 1}
    assert all(held[f"j{i}"] == {1, 2, 3} for i in range(3, 8))
