"""What studies can win at all: no order beats the bound, and the search beats what it begins with."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from controller.model import Demand, Host
from controller.policies.base import OptionError
from controller.policies.registry import make
from evaluation.beamer.bounds.least import alone_seconds, least
from evaluation.beamer.bounds.listed import Listed
from evaluation.beamer.bounds.search import evaluate, search
from evaluation.beamer.kinds import NINE, Bracket, Kind
from evaluation.beamer.simulation import Rung, SimStudies, run, studies
from evaluation.beamer.workload import experiment
from simulator.jobs import Compute, SimJob, Transfer, Workload
from simulator.limits import Limits
from tests.support.controller.small_snapshots import job, snapshot

SECOND = 1e6 / 8
HOSTS = {name: Host(name, 1e6, 1e6) for name in ("h1", "h2", "h3")}
FEW = Kind("few", 2, (Bracket(9, (2, 6, 18)),), 1.0)


def trial(name: str, seconds: float, compute: float = 0.0, arrival: float = 0.0, **fields) -> SimJob:
    """A job of one iteration that sends for so many seconds from h1 to h2."""
    steps = (Compute(compute), Transfer((Demand("h1", "h2", seconds * SECOND),)))
    return SimJob(name, (steps,), arrival=arrival, curve=(0.5,), **fields)


def made(*brackets: tuple[SimJob, ...]) -> SimStudies:
    """Brackets whose rungs have a trial each."""
    rungs = {
        f"s{n}": tuple(Rung(f"s{n}.r{r}", r, (one,)) for r, one in enumerate(trials))
        for n, trials in enumerate(brackets)
    }
    jobs = tuple(one for trials in brackets for one in trials)
    best = {name: of[-1].jobs[0].id for name, of in rungs.items()}
    arrivals = {name: of[0].jobs[0].arrival for name, of in rungs.items()}
    return SimStudies(Workload("made", HOSTS, jobs), rungs, best, arrivals)


def test_a_study_alone_takes_its_longest_trial_or_its_busiest_port() -> None:
    sim = made((trial("a", 2.0, compute=3.0),))
    assert alone_seconds(sim) == {"a": 5.0}
    assert least(sim).alone == least(sim).together == pytest.approx(5.0)
    both = SimStudies(
        Workload("both", HOSTS, (trial("a", 4.0), trial("b", 3.0))),
        {"s": (Rung("s.r0", 1, (trial("a", 4.0), trial("b", 3.0))),)}, {"s": "a"}, {"s": 0.0},
    )  # fmt: skip
    assert least(both).alone == pytest.approx(7.0)


def test_studies_on_one_port_can_be_no_sooner_than_one_after_the_other() -> None:
    sim = made((trial("a", 2.0),), (trial("b", 3.0),), (trial("c", 7.0),))
    assert least(sim).alone == pytest.approx(4.0)
    assert least(sim).together == pytest.approx((2 + 5 + 12) / 3)
    assert evaluate(sim, ["a", "b", "c"], Limits()).sct == pytest.approx((2 + 5 + 12) / 3), "it can be reached"


def test_who_comes_later_cannot_have_waited() -> None:
    sim = made((trial("a", 4.0),), (trial("b", 1.0, arrival=10.0),))
    assert least(sim).together == pytest.approx(2.5)


def test_rungs_follow_each_other() -> None:
    sim = made((trial("a", 2.0), trial("a2", 2.0, compute=5.0, after=("a",))), (trial("b", 3.0),))
    # b waits for a, while a2 computes: 2, 7 and 5.
    assert least(sim).together == pytest.approx((2 + 7 + 5) / 3)
    best = min(evaluate(sim, order, Limits()).sct for order in permutations(["a", "a2", "b"]))
    assert best == pytest.approx((2 + 7 + 5) / 3)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_order_beats_the_bound(seed: int) -> None:
    sim = studies(experiment(NINE, seed))
    bound = least(sim)
    assert 0 < bound.alone <= bound.together
    for policy in ("fair", "sincronia", "beamer"):
        assert run(sim, make(policy), Limits()).sct >= bound.together


def test_the_search_finds_no_worse_than_it_begins_with_and_the_same_again() -> None:
    sim = studies(experiment(FEW, 1))
    found = search(sim, Limits(), evaluations=30)
    assert found.times.sct <= found.start.sct
    assert evaluate(sim, found.order, Limits()) == found.times
    assert search(sim, Limits(), evaluations=30) == found
    assert sorted(found.order) == sorted(job.id for job in sim.workload.jobs)
    assert found.times.sct >= least(sim).together


def test_the_search_begins_with_the_brackets_one_after_the_other() -> None:
    sim = made((trial("a", 9.0),), (trial("b", 1.0),))
    found = search(sim, Limits(), evaluations=2)
    assert found.order == ("b", "a")
    assert found.start.sct == pytest.approx((1 + 10) / 2)


def test_listed_jobs_go_by_their_places() -> None:
    policy = Listed(places={"a": 2.0, "b": 1.0, "c": 2.0})
    assert policy.order(snapshot(job("a"), job("b"), job("c")), None).bands == (("b",), ("a", "c"))
    with pytest.raises(OptionError, match="places: there is none of job d"):
        policy.order(snapshot(job("d")), None)


def test_the_bound_of_many_rungs_is_that_of_all_sets_of_them() -> None:
    # Rungs of equal length on one port, each a bracket of its own: the optimum is known.
    sim = made(*((trial(f"j{n}", 1.0),) for n in range(12)))
    assert least(sim).together == pytest.approx(np.arange(1, 13).mean())
