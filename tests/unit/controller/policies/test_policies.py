"""What each policy orders by, on snapshots small enough to know the answer."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from controller.model import Demand, Job, Progress, Role, Stage, Task
from controller.ordering.loads import load_matrix
from controller.ordering.service import attained
from controller.policies.beamer import Beamer
from controller.policies.crux import Crux
from controller.policies.fifo import Fifo
from controller.policies.fifo_lm import FifoLm
from controller.policies.las import Las
from controller.policies.parts.epoch_fit import fitting
from controller.policies.parts.stages import rungs_to_come
from controller.policies.registry import PolicyError, available, make
from controller.policies.sebf import Sebf
from controller.policies.sincronia import Sincronia
from tests.support.controller.small_snapshots import SECOND, ids, job, snapshot

ALL = [
    "beamer",
    "crux",
    "fair",
    "fifo",
    "fifo-lm",
    "jpas",
    "las",
    "sebf",
    "sincronia",
    "tensorlights-one",
    "tensorlights-rr",
]


@pytest.mark.parametrize("name", ALL)
def test_every_policy_places_every_job_once_with_a_reason_also_where_there_is_nothing_to_go_by(name) -> None:
    policy = make(name)
    assert policy.order(snapshot(), None).bands == ()
    jobs = (job("a"), job("b", 0), job("c", iterations_left=0.0), job("d", 2.0, "h3", "h4", arrival=200.0))
    first = policy.order(snapshot(*jobs), None)
    again = policy.order(snapshot(*jobs, now=130.0), first)
    for ordering in (first, again):
        assert ordering.policy == name
        assert sorted(ids(ordering)) == ["a", "b", "c", "d"]
        assert all(ordering.reasons[job] for job in "abcd")
        assert all(np.isfinite(value) for value in ordering.memory.values())


def test_the_installed_policies_are_these() -> None:
    assert set(ALL) <= set(available())
    assert all(available()[name].name == name for name in ALL)


def test_fifo_breaks_ties_by_the_order_of_the_snapshot() -> None:
    jobs = (job("z", arrival=1.0), job("a", arrival=1.0), job("m", arrival=0.5))
    assert ids(Fifo().order(snapshot(*jobs), None)) == ["m", "z", "a"]


def test_sebf_goes_by_what_is_left_at_the_bottleneck() -> None:
    spread = Job("spread", (Demand("h1", "h2", SECOND), Demand("h3", "h4", SECOND)), iterations_left=1.5)
    gathered = Job("gathered", (Demand("h1", "h5", SECOND), Demand("h2", "h5", SECOND)))
    nearly = job("nearly", 10.0, iterations_left=0.1)
    ordering = Sebf().order(snapshot(gathered, spread, nearly), None)
    assert ids(ordering) == ["nearly", "spread", "gathered"]
    assert "needs 2 s" in ordering.reasons["gathered"]


def test_sebf_breaks_ties_by_arrival_then_by_the_snapshot() -> None:
    jobs = (job("c", arrival=2.0), job("b", arrival=1.0), job("a", arrival=1.0))
    assert ids(Sebf().order(snapshot(*jobs), None)) == ["b", "a", "c"]


# FIFO-LM -------------------------------------------------------------------------------------------------------------


def test_fifo_lm_serves_the_next_beside_a_heavy_job() -> None:
    jobs = [job(f"j{i}", 1.0, arrival=float(i)) for i in range(4)]
    policy = FifoLm(heavy_bytes=0.5 * SECOND)
    assert policy.order(snapshot(*jobs), None).bands == (("j0",), ("j1",), ("j2",), ("j3",))
    jobs[0] = job("j0", 1.0, arrival=0.0, sent_bytes={"h1": 0.6 * SECOND})
    ordering = policy.order(snapshot(*jobs), None)
    assert ordering.bands == (("j0", "j1"), ("j2",), ("j3",))
    assert "beside j0" in ordering.reasons["j1"]
    jobs[1] = job("j1", 1.0, arrival=1.0, sent_bytes={"h1": 0.6 * SECOND})
    assert policy.order(snapshot(*jobs), None).bands == (("j0", "j1", "j2"), ("j3",))


def test_fifo_lm_knows_a_job_that_has_sent_exactly_the_threshold_as_not_heavy_yet() -> None:
    jobs = (job("a", 1.0, sent_bytes={"h1": 5.0}), job("b"))
    assert FifoLm(heavy_bytes=5.0).order(snapshot(*jobs), None).bands == (("a",), ("b",))


def test_fifo_lm_says_when_a_job_can_have_become_heavy_at_the_soonest() -> None:
    policy = FifoLm(heavy_bytes=SECOND)
    both = (Demand("h1", "h5", SECOND), Demand("h2", "h5", SECOND))
    assert policy.order(snapshot(Job("gathered", both, arrival=100.0)), None).until == pytest.approx(101.0)
    nearly = Job("nearly", both, arrival=0.0, sent_bytes={"h1": 0.5 * SECOND, "h2": 0.499 * SECOND})
    assert policy.order(snapshot(nearly), None).until == pytest.approx(102.0), (
        "it is late by at most a fiftieth of its age"
    )
    assert policy.order(snapshot(job("small", 1.0)), None).until == math.inf
    heavy = Job("heavy", both, sent_bytes={"h1": 1.1 * SECOND})
    assert policy.order(snapshot(heavy), None).until == math.inf


def test_fifo_lm_takes_the_80th_percentile_of_all_the_sizes_it_has_seen() -> None:
    sizes = [1.0, 2.0, 3.0, 4.0, 50.0]
    jobs = [job(f"j{i}", size, arrival=float(i)) for i, size in enumerate(sizes)]
    ordering = FifoLm().order(snapshot(*jobs), None)
    assert f"heavy above {4 * SECOND / 1e6:.4g} MB" in ordering.reasons["j0"]
    # The small jobs end; the big one remains, and is heavy by the sizes of all jobs.
    late = [
        job("j4", 50.0, arrival=4.0, iterations_left=0.5, sent_bytes={"h1": 25 * SECOND}),
        job("new", 1.0, arrival=9.0),
    ]
    later = FifoLm().order(snapshot(*late), ordering)
    assert later.bands == (("j4", "new"),)
    assert sum(value for key, value in later.memory.items() if key.startswith("sizes:")) == 6
    assert {key for key in later.memory if key.startswith("counted:")} == {"counted:j4", "counted:new"}


# LAS -----------------------------------------------------------------------------------------------------------------


def used(name: str, seconds: float) -> Job:
    return job(name, 1.0, sent_bytes={"h1": seconds * SECOND})


def test_las_keeps_its_order_until_the_moment_that_it_names() -> None:
    random = Random(7)
    policy = Las()
    looked = 0
    for _ in range(2000):
        seconds = {f"j{i}": 2.0 ** random.uniform(-3, 6) for i in range(random.randint(2, 6))}
        now = policy.order(snapshot(*(used(*entry) for entry in seconds.items())), None)
        ahead = now.until - 100.0
        later = {name: so_far + 0.999 * random.random() * min(ahead, 1e3) for name, so_far in seconds.items()}
        if any(math.log2(so_far) % 1.0 > math.log2(2 * 0.98) for so_far in seconds.values()):
            continue  # A job this near to the end of its band may be late.
        looked += 1
        assert policy.order(snapshot(*(used(*entry) for entry in later.items())), now).bands == now.bands
    assert looked > 1000


def test_las_plans_no_more_than_what_can_change_the_order() -> None:
    policy = Las()
    assert policy.order(snapshot(used("alone", 0.3)), None).until == math.inf
    apart = policy.order(snapshot(used("a", 0.3), used("b", 9.0)), None)
    assert apart.bands == (("a",), ("b",))
    assert apart.until == pytest.approx(100.0 + 8.0 - 0.3), "when a may have used 8 s, it is in the band of b"
    together = policy.order(snapshot(used("a", 0.3), used("b", 0.6)), None)
    assert together.until == pytest.approx(100.4)


# Sincronia -----------------------------------------------------------------------------------------------------------


def test_sincronia_finds_the_order_that_sebf_misses() -> None:
    # The wide job has the smallest bottleneck, but both other jobs would wait for it.
    wide = Job("wide", (Demand("h1", "h2", 0.9 * SECOND), Demand("h3", "h4", 0.9 * SECOND)))
    narrow = [
        Job("n1", (Demand("h1", "h2", 0.8 * SECOND), Demand("h5", "h1", SECOND))),
        Job("n2", (Demand("h3", "h4", 0.8 * SECOND), Demand("h2", "h5", SECOND))),
    ]
    assert ids(Sebf().order(snapshot(wide, *narrow), None))[0] == "wide"
    assert ids(Sincronia().order(snapshot(wide, *narrow), None))[-1] == "wide"


def test_sincronia_offline_ignores_arrivals_and_counts_iterations() -> None:
    jobs = (job("early", 1.0, arrival=0.0, iterations_left=5.0), job("late", 2.0, arrival=50.0))
    ordering = Sincronia().order(snapshot(*jobs), None)
    assert ordering.bands == (("late",), ("early",))
    assert not ordering.memory


def test_sincronia_online_orders_what_fits_and_lets_the_rest_age() -> None:
    policy = Sincronia(online=True, unit_seconds=1.0, epochs=3)
    small, large = job("small", 0.5, arrival=99.0), job("large", 30.0, arrival=98.0)
    larger = job("larger", 40.0, arrival=0.0)
    first = policy.order(snapshot(large, larger, small, now=100.0), None)
    # 30 s left / 2 s waited, 40 / 100: who waited longer goes first among those that do not fit.
    assert ids(first) == ["small", "larger", "large"]
    assert "epoch 1 of 3" in first.reasons["small"]
    assert "not chosen for epoch 1" in first.reasons["larger"]


def test_sincronia_online_keeps_its_choice_until_the_epoch_ends_and_epochs_double_and_return() -> None:
    policy = Sincronia(online=True, unit_seconds=1.0, epochs=3)
    a, b = job("a", 0.6, weight=2.0), job("b", 0.2, arrival=100.5)
    ordering = policy.order(snapshot(a, now=100.0), None)
    during = policy.order(snapshot(b, a, now=100.5), ordering)
    assert ids(during) == ["a", "b"]
    assert during.memory["epoch:ends"] == 101.0
    after = policy.order(snapshot(a, b, now=101.0), during)
    assert ids(after) == ["b", "a"], "by weight over load, now that both are chosen"
    assert {key for key in after.memory if key.startswith("place:")} == {"place:a", "place:b"}
    ends = [after.memory["epoch:ends"]]
    for _ in range(3):
        after = policy.order(snapshot(a, b, now=ends[-1]), after)
        ends.append(after.memory["epoch:ends"])
    assert np.diff([101.0, *ends]).tolist() == [2.0, 4.0, 1.0, 2.0]


def test_the_lp_takes_what_weighs_most_where_not_all_fit() -> None:
    jobs = (job("a", 0.6), job("b", 0.6, weight=3.0), job("c", 0.4, weight=2.0), job("d", 0.9, "h3", "h4"))
    loads = load_matrix(snapshot(*jobs))
    weight = np.array([1.0, 3.0, 2.0, 1.0])
    assert fitting(loads, weight, 1.0).tolist() == [False, True, True, True]
    assert fitting(loads, weight, 0.1).tolist() == [False] * 4
    assert fitting(loads, weight, 10.0).tolist() == [True] * 4


# Beamer --------------------------------------------------------------------------------------------------------------


def test_beamer_puts_the_lighter_stage_first_and_in_a_stage_the_longest_job() -> None:
    jobs = (
        job("heavy-1", 3.0, stage="heavy"),
        job("light-1", 1.0, stage="light"),
        job("heavy-2", 4.0, stage="heavy"),
        job("light-2", 2.0, stage="light"),
    )
    ordering = Beamer().order(snapshot(*jobs), None)
    assert ids(ordering) == ["light-2", "light-1", "heavy-2", "heavy-1"]
    assert "stage light, number 1 of 2 so that stages end early on average: 3 s left" in ordering.reasons["light-1"]


def test_beamer_counts_compute_and_all_iterations_in_a_jobs_remaining_time() -> None:
    jobs = (
        job("network", 2.0, stage="s"),
        job("compute", 1.0, stage="s", compute_seconds=5.0),
        job("long", 1.0, stage="s", iterations_left=9.0),
    )
    assert ids(Beamer().order(snapshot(*jobs), None)) == ["long", "compute", "network"]


def test_beamer_takes_a_job_without_a_stage_as_a_stage_and_the_snapshots_stages_before_the_jobs_own() -> None:
    alone = (job("x", 5.0), job("y", 1.0))
    assert ids(Beamer().order(snapshot(*alone), None)) == ["y", "x"]
    # In a common stage, the longer job goes first.
    staged = snapshot(*alone, stages=(Stage("rung", ("x", "y")),))
    assert ids(Beamer().order(staged, None)) == ["x", "y"]


def test_beamer_counts_the_rungs_that_a_study_has_still_to_come() -> None:
    # One trial of a last rung has more left than the three of a rung after which one of them goes on.
    last = job("last", 1.0, stage="a.b0.r1", iterations_left=7.0, iterations_total=9.0)
    three = [job(f"t{n}", 1.0, stage="b.b0.r0", iterations_left=2.0, iterations_total=3.0) for n in range(3)]
    assert ids(Beamer(horizon="stage").order(snapshot(last, *three), None))[0] == "t0"
    ordering = Beamer().order(snapshot(last, *three), None)
    assert ids(ordering)[0] == "last"
    assert "6 s left at its busiest port, 15 s with the 1 rung to come" in ordering.reasons["t0"]
    assert "to come" not in ordering.reasons["last"]
    assert ids(Beamer(eta=4.0).order(snapshot(last, *three), None))[0] == "t0", "of three none goes on"


def test_beamer_believes_a_tuner_that_tells_how_many_rungs_are_left() -> None:
    last = job("last", 1.0, stage="a.b0.r1", iterations_left=7.0, iterations_total=9.0)
    three = [job(f"t{n}", 1.0, stage="b.b0.r0", iterations_left=2.0, iterations_total=3.0) for n in range(3)]
    told = [replace(trial, rungs_left=0) for trial in three]
    assert ids(Beamer().order(snapshot(last, *told), None))[0] == "t0"
    told = [three[0], replace(three[1], rungs_left=2), three[2]]
    assert "24 s with the 2 rungs to come" in Beamer().order(snapshot(last, *told), None).reasons["t0"]
    alone = replace(last, stage=None, rungs_left=3)
    assert "to come" not in Beamer().order(snapshot(alone), None).reasons["last"], "it is in no stage"


def test_beamer_remembers_what_a_rung_began_with() -> None:
    policy = Beamer()
    trials = [job(f"t{n}", 1.0, stage="b.b0.r0", iterations_total=3.0) for n in range(9)]
    first = policy.order(snapshot(*trials, job("other", 1.0)), None)
    assert first.memory == {"trials:b.b0.r0": 9.0, "load:b.b0.r0": 9.0}
    late = policy.order(snapshot(trials[0]), first)
    assert "1 s left at its busiest port, 55 s with the 2 rungs to come" in late.reasons["t0"]
    assert late.memory == first.memory
    assert policy.order(snapshot(job("other", 1.0)), late).memory == {}, "a stage that is over is forgotten"
    assert Beamer(horizon="stage").order(snapshot(*trials), None).memory == {}


def test_beamer_without_stages_serves_the_least_left_first_and_on_ties_as_the_jobs_come() -> None:
    jobs = (job("long", 3.0), job("first", 1.0), job("second", 1.0))
    assert ids(Beamer().order(snapshot(*jobs), None)) == ["first", "second", "long"]
    assert Beamer().order(snapshot(), None).bands == ()


@pytest.mark.parametrize(
    ("trials", "rungs"), [(0, 0), (1, 0), (2, 0), (3, 1), (8, 1), (9, 2), (27, 3), (81, 4), (243, 5)]
)
def test_one_trial_in_eta_goes_on_each_time(trials, rungs) -> None:
    assert rungs_to_come(trials, 3.0) == rungs


# Crux ----------------------------------------------------------------------------------------------------------------


def test_crux_goes_by_compute_over_the_slowest_link() -> None:
    jobs = (
        job("chatty", 1.0, compute_seconds=1.0),
        job("busy", 1.0, compute_seconds=3.0),
        job("idle", 1.0),
        job("local", 0),
    )
    ordering = Crux().order(snapshot(*jobs), None)
    assert ids(ordering) == ["local", "busy", "chatty", "idle"]
    assert "computes 3 GPU-seconds for each second" in ordering.reasons["busy"]


def test_crux_counts_the_workers_that_compute() -> None:
    workers = (Task(Role.PS, "h1"), *(Task(Role.WORKER, host) for host in ("h2", "h3", "h4")))
    jobs = (job("one", 1.0, compute_seconds=2.0), job("three", 1.0, compute_seconds=1.0, tasks=workers))
    assert ids(Crux().order(snapshot(*jobs), None)) == ["three", "one"]


# Options -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("beamer", {"horizon": "rung"}, "horizon: 'rung'; it must be one of stage, study"),
        ("beamer", {"eta": 1}, "eta: 1; it must be a number from 1.5 to 1000"),
        ("fifo-lm", {"percentile": 101}, "percentile: 101; it must be a number from 0 to 100"),
        ("fifo-lm", {"heavy_bytes": -1}, "heavy_bytes: -1"),
        ("sincronia", {"online": "yes"}, "online: 'yes'; it must be true or false"),
        ("sincronia", {"unit_seconds": 0}, "unit_seconds: 0"),
        ("sincronia", {"epochs": 0}, "epochs: 0; it must be a whole number from 1 to 60"),
        ("sincronia", {"epochs": True}, "epochs: True; it must be a whole number from 1 to 60"),
        ("sincronia", {"epochs": 2.0}, "epochs: 2.0; it must be a whole number"),
        ("sincronia", {"unit_seconds": True}, "unit_seconds: 'True'; it must be a number"),
        ("jpas", {"ageing_periods": True}, "ageing_periods: True; it must be a whole number from 1 to 1000000000"),
        ("fifo-lm", {"percentile": True}, "percentile: 'True'; it must be a number"),
        ("tensorlights-rr", {"rotate_seconds": True}, "rotate_seconds: 'True'; it must be a number"),
        ("tensorlights-one", {"host": True}, "host: True; it must be the name of a host"),
        ("tensorlights-one", {"host": ""}, "host: ''"),
        ("tensorlights-rr", {"rotate_seconds": 0}, "rotate_seconds: 0"),
        ("tensorlights-rr", {"host": 3}, "host: 3; it must be the name of a host"),
        ("sebf", {"x": 1}, r"^policy sebf has no option x; it has none$"),
        (
            "las",
            {"x": 1, "factor": 3.0, "y": 1},
            r"^policy las has no option x, y; there are: first_seconds \(a number ",
        ),
    ],
)
def test_wrong_options_are_refused_in_words(name, options, words) -> None:
    with pytest.raises(PolicyError, match=words):
        make(name, options)


def test_service_counts_by_progress_where_nothing_is_measured() -> None:
    done = job("done", 1.0, progress=(Progress(3.0, 1.0),), arrival=1.0)
    fresh = job("fresh", 1.0, arrival=2.0)
    assert make("las").order(snapshot(done, fresh), None).bands == (("fresh",), ("done",))
    assert FifoLm(heavy_bytes=2.5 * SECOND).order(snapshot(done, fresh), None).bands == (("done", "fresh"),)


def test_a_job_that_nobody_counts_has_sent_since_it_was_last_heard_of() -> None:
    def service(**fields: Any) -> float:
        known = snapshot(job("a", 2.0, is_counted=False, **fields))
        return float(attained(known, load_matrix(known).bottlenecks())[0])

    assert service(arrival=90.0) == pytest.approx(10.0)
    assert service(arrival=110.0) == 0.0, "clocks may differ"
    assert service(arrival=90.0, compute_seconds=8.0) == pytest.approx(2.5), "at most a quarter of its time"
    assert service(arrival=0.0, progress=(Progress(7.0, 97.0),)) == pytest.approx(2.0 * 7 + 3.0)
    assert service(arrival=0.0, progress=(Progress(7.0, 100.0),)) == pytest.approx(14.0)
