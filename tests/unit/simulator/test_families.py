"""A simulation learns from what ended earlier in it, by the same functions as the controller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from controller.families.history import FamilyHistory
from controller.model import Demand, Host, Job, Metric, Ordering, Snapshot
from controller.policies.base import DependsOn, Policy
from simulator.engine import Limits, simulate
from simulator.errors import InputError
from simulator.jobs import Compute, SimJob, Transfer, Workload
from tests.support.controller.registry.family_runs import rising
from tests.support.controller.registry.registry_world import World, progress

HOSTS = {name: Host(name, 1e6, 1e6) for name in ("a", "b")}


def job(name: str, arrival: float, curve: list[float], family: str = "resnet50") -> SimJob:
    lane = (Compute(0.5), Transfer((Demand("a", "b", 1000.0),)))
    return SimJob(
        name, (lane,), arrival, iterations=len(curve), curve=tuple(curve), family=family, metric=Metric("accuracy")
    )


STREAM = [
    job("one", 0.0, rising(end=0.94)),
    job("other", 0.0, rising(), family="bert"),
    job("two", 100.0, rising(end=0.945, scale=11.0)),
    job("late", 200.0, rising(150)),
    job("none", 200.0, rising(), family=""),
]


@dataclass
class Spy(Policy):
    """Serves all jobs alike, and remembers what it knew of each job's family."""

    name: ClassVar[str] = "spy"

    def __post_init__(self) -> None:
        self.known: dict[str, list[FamilyHistory | None]] = {}

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        for each in snapshot.jobs:
            known = self.known.setdefault(each.id, [])
            if not known or known[-1] != each.family:
                known.append(each.family)
        ids = tuple(each.id for each in snapshot.jobs)
        return Ordering("spy", (ids,), dict.fromkeys(ids, "all alike"))


def told(
    jobs: list[SimJob], limits: Limits | None = None, earlier: tuple[SimJob, ...] = ()
) -> dict[str, list[FamilyHistory | None]]:
    spy = Spy()
    simulate(Workload("stream", HOSTS, tuple(jobs), earlier=earlier), spy, limits or Limits())
    return spy.known


@pytest.mark.parametrize("limits", [Limits(), Limits(classes=7, period=1.0)])
def test_a_job_is_shown_what_ended_before(limits: Limits) -> None:
    known = told(STREAM, limits)
    assert [history.runs for history in known["one"] if history is not None] == [()], "it begins cold"
    runs = [[run.job for run in history.runs] for history in known["late"] if history is not None]
    assert runs == [["one", "two"]]
    assert known["none"] == [None]
    assert [history.runs for history in known["other"] if history is not None] == [()]


def test_what_ends_while_a_job_runs_is_shown_from_then_on() -> None:
    known = told([job("short", 0.0, rising(60)), job("long", 0.0, rising(200))])
    assert [len(history.runs) for history in known["long"] if history is not None] == [0, 1]


@pytest.mark.parametrize("limits", [Limits(), Limits(classes=7, period=1.0)])
def test_what_ended_before_the_first_arrival_is_shown_from_the_first_plan_on(limits: Limits) -> None:
    earlier = (STREAM[0], STREAM[2])
    known = told([job("next", 0.0, rising()), job("other", 0.0, rising(), family="bert")], limits, earlier)
    (history,) = known["next"]
    assert history is not None
    assert [run.job for run in history.runs] == ["one", "two"]
    assert [run.ended_at for run in history.runs] == [-2.0, -1.0]
    assert [other.runs for other in known["other"] if other is not None] == [()]
    later = told(STREAM, limits)["late"][-1]
    assert later is not None
    assert (history.gate, history.converged, history.share_t90) == (later.gate, later.converged, later.share_t90)


def test_the_runs_that_ended_before_may_have_the_ids_of_those_that_come() -> None:
    known = told([job("one", 0.0, rising())], earlier=(STREAM[0], replace(STREAM[0], arrival=5.0)))
    assert [len(history.runs) for history in known["one"] if history is not None] == [2]


def test_earlier_jobs_whose_curve_is_too_short_are_refused() -> None:
    with pytest.raises(InputError, match="earlier job one: its curve has 100 points for 200 iterations"):
        told(STREAM, earlier=(replace(STREAM[0], iterations=200),))


class Incurious(Spy):
    """Says that its order depends on arrivals alone."""

    order_depends_on = DependsOn.ARRIVALS


def test_a_policy_that_looks_at_arrivals_alone_costs_no_histories() -> None:
    policy = Incurious()
    simulate(Workload("stream", HOSTS, tuple(STREAM)), policy, Limits())
    assert policy.known == {each.id: [None] for each in STREAM}


def test_the_controller_says_the_same_of_the_same_runs() -> None:
    world = World()
    for each in STREAM[0], STREAM[2]:
        world.clock.now += 10.0
        world.put(each.id, port=None, family="resnet50", iterations=float(each.iterations))
        points = [(float(k), metric) for k, metric in enumerate(each.curve, start=1)]
        world.tell(jobs=[progress(each.id, *points, ended=True, as_of=world.clock.now)])
    world.put("late", port=None, family="resnet50")
    controllers: Job = next(value for value in world.snapshot().jobs if value.id == "late")
    simulated = told(STREAM)["late"][-1]
    assert simulated is not None
    assert controllers.family is not None
    assert controllers.family.gate == simulated.gate
    assert controllers.family.converged == simulated.converged
    assert controllers.family.share_t90 == simulated.share_t90

    def timeless(history: FamilyHistory) -> list[object]:
        return [replace(run, began=0.0, ended_at=0.0) for run in history.runs]

    assert timeless(controllers.family) == timeless(simulated)
