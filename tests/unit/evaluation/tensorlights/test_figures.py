"""How the arms of the claim add up."""

from __future__ import annotations

import pytest

from evaluation.tensorlights import claim
from evaluation.tensorlights.figures import add_up
from evaluation.tensorlights.groups import ARMS, FAIR, ONE, PROCESSORS, RR, SEVEN, TOGETHER, Group
from evaluation.tensorlights.streams.orders import orders
from tests.support.tensorlights_results import arm, job, lab

APART = (1,) * 21


def short(placement: tuple[int, ...], seed: int) -> Group:
    """A group whose simulation takes a moment."""
    return Group(placement, seed, iterations=2)


def test_results_add_up_by_placement_against_fair_sharing_on_the_same_jobs() -> None:
    results = [
        (
            short(TOGETHER, seed),
            lab(
                arm("tls-rr", seed, job(30.0, 0.5, 0.1), idle=0.4),
                arm(
                    "fair",
                    seed,
                    *[job(50.0 + seed, 1.0, 0.4)] * 10,
                    job(50.0, 2.0, 0.5),
                    *[job(50.0 - seed, 3.0, 0.6)] * 10,
                ),
                arm("tls-one", seed, *[job(20.0, 1.0, 0.25)] * 10, job(40.0, 1.0, 0.25), *[job(60.0, 1.0, 0.25)] * 10),
            ),
        )
        for seed in (3, 4)
    ] + [(short(APART, 3), lab(arm("fair", 3, job(40.0)), arm("tls-one", 3, job(40.0)), arm("tls-rr", 3, job(50.0))))]
    fields = add_up(results)
    assert (fields["arms"], fields["least_cpu_idle_share"]) == (9, 0.4)
    assert list(fields["placements"]) == ["21", "1x21"]
    assert fields["why"] == {}
    together = fields["placements"]["21"]["arms"]
    assert list(together) == ["fair", "tls-one", "tls-rr"]
    assert together["fair"]["jct"]["mean"] == pytest.approx(50.0)
    assert together["fair"]["jct"]["reduction"] == 0.0
    assert together["tls-rr"]["jct"]["reduction"] == pytest.approx(0.4)
    assert together["tls-rr"]["jct"]["reduction_ci95"] == [pytest.approx(0.4), pytest.approx(0.4)]
    assert together["tls-one"]["jct"]["by_seed"] == [pytest.approx(40.0), pytest.approx(40.0)]
    assert together["tls-one"]["makespan"]["by_seed"] == [60.0, 60.0]
    assert together["tls-rr"]["barrier_wait"]["reduction"] == pytest.approx(0.75)
    assert together["tls-rr"]["barrier_variance"]["reduction"] == pytest.approx(0.8)
    assert together["tls-rr"]["server_wait"]["mean"] == pytest.approx(0.25)
    assert together["tls-rr"]["server_variance"]["reduction"] == pytest.approx(0.8)
    assert together["tls-rr"]["cpu_busy_share"] == pytest.approx(0.6)
    assert together["tls-rr"]["causes"]["fan_out_seconds"] == pytest.approx(1.0)
    assert [band["band"] for band in together["tls-one"]["bands"]] == list(range(7))
    assert together["fair"]["tcp"]["timeouts"] == 2.0
    assert fields["placements"]["1x21"]["arms"]["tls-rr"]["jct"]["reduction"] == pytest.approx(-0.25)
    assert fields["placements"]["1x21"]["arms"]["tls-rr"]["bands"] == []


def test_bounds_and_simulations_are_beside_the_arms() -> None:
    arms = [arm(choice.name, 3, job(80.0)) for choice in ARMS]
    figures = add_up([(short(TOGETHER, 3), lab(*arms))])["placements"]["21"]
    assert figures["servers"] == [21]
    assert 0.0 < figures["bound"]["jct"] < 80.0
    assert figures["bound"]["reduction"] == pytest.approx(1.0 - figures["bound"]["jct"] / 80.0)
    assert list(figures["fluid"]) == ["fair", "tls-one", "tls-rr", "tls-each"]
    assert figures["fluid"]["fair"]["reduction"] == 0.0
    assert all(each["jct"] >= figures["bound"]["jct"] for each in figures["fluid"].values())
    assert figures["arms"]["tls-each"]["jct"]["mean"] == pytest.approx(80.0)
    assert figures["streams"]["one queue"]["reduction"] == 0.0
    assert figures["streams"]["tls-one"]["reduction"] > 0.0
    assert figures["streams"]["hashed queues"]["wait"] > 0.0


def test_what_explains_the_claim_is_apart_from_it() -> None:
    explaining = Group((7,), 3, iterations=2, policies=(FAIR, ONE), variant=SEVEN)
    fields = add_up(
        [
            (short(TOGETHER, 3), lab(*(arm(choice.name, 3, job(40.0)) for choice in ARMS))),
            (explaining, lab(arm("fair", 3, job(30.0)), arm("tls-one", 3, job(15.0)))),
        ]
    )
    assert list(fields["placements"]) == ["21"]
    assert list(fields["why"]) == ["seven"]
    assert fields["why"]["seven"]["arms"]["tls-one"]["jct"]["reduction"] == pytest.approx(0.5)
    assert {entry["value"] for entry in claim.headline(fields) if entry["metric"] == "mean_jct"} == {40.0}


def test_what_the_simulator_has_not_is_not_simulated() -> None:
    sharing = Group(TOGETHER, 3, iterations=2, policies=(FAIR, ONE), variant=PROCESSORS)
    fields = add_up([(sharing, lab(arm("fair", 3, job(30.0)), arm("tls-one", 3, job(15.0))))])
    assert (fields["why"]["processors"]["fluid"], fields["why"]["processors"]["streams"]) == (None, None)
    assert fields["why"]["processors"]["bound"]["jct"] < 15.0
    assert all(table.row_count == 2 for table in claim.tables(fields))


def test_a_job_that_does_not_end_counts_as_long_as_it_was_watched() -> None:
    result = lab(arm("fair", 1, job(50.0)), arm("tls-one", 1, job(None)), arm("tls-rr", 1, job(50.0)))
    found = add_up([(short(TOGETHER, 1), result)])["placements"]["21"]["arms"]["tls-one"]
    assert (found["censored"], found["jobs"]) == (21, 21)
    assert found["jct"]["mean"] == 99.0
    assert found["computing_share"] is None


def test_what_was_not_measured_is_not_claimed() -> None:
    arms = [arm(choice.name, 1, job(40.0), job(50.0, asked=False)) for choice in (FAIR, ONE, RR)]
    fields = add_up([(short(TOGETHER, 1), lab(*arms))])
    found = fields["placements"]["21"]["arms"]["fair"]
    assert (found["barrier_wait"], found["server_wait"], found["causes"]) == (None, None, None)
    assert {entry["metric"] for entry in claim.headline(fields)} == {"mean_jct"}
    assert {table.row_count for table in claim.tables(fields)} == {3, len(orders(1))}, "arms, and simulated orders"
