"""When a report wakes the planner: a metric that crosses a target, and no sooner."""

from __future__ import annotations

from controller.wire import Threshold
from tests.support.controller.registry.registry_world import World, progress


def test_a_crossed_target_triggers_once(world: World) -> None:
    world.put()
    world.triggers.clear()
    world.registry.set_watch({"a": 0.5}, as_of=world.clock.now)
    for k, metric in ((1, 0.3), (2, 0.49), (3, 0.5), (4, 0.4), (5, 0.6)):
        world.tell(jobs=[progress("a", (k, metric))])
    assert world.triggers == ["target crossed"]
    world.registry.set_watch({"a": 0.5}, as_of=world.clock.now)
    world.tell(jobs=[progress("a", (6, 0.4))])
    world.tell(jobs=[progress("a", (7, 0.7))])
    assert world.triggers == ["target crossed"]
    world.registry.set_watch({"a": 0.8}, as_of=world.clock.now)
    world.tell(jobs=[progress("a", (8, 0.9))])
    assert world.triggers == ["target crossed"] * 2


def test_who_reports_a_job_is_told_what_its_metric_has_yet_to_cross(world: World) -> None:
    world.put(metric={"name": "loss", "direction": "min"})
    world.put("b", tasks=[{"role": "worker", "host": "h1", "port": 7001}, {"role": "worker", "host": "h3"}])
    assert world.tell(jobs=[progress("a", (1, 3.0))]).urgent == {}
    world.registry.set_watch({"a": 1.0, "b": 0.5}, as_of=world.clock.now)
    answer = world.tell(jobs=[progress("a", (2, 2.0)), progress("nobody", (1, 1.0))])
    assert answer.urgent == {"a": Threshold(metric=1.0, direction="min")}
    assert world.tell(jobs=[progress("a", (3, 0.9)), progress("b", (1, 0.1))]).urgent == {"b": Threshold(metric=0.5)}
    assert world.tell(jobs=[progress("a", (4, 2.0))]).urgent == {}
    world.registry.set_watch({"a": float("nan"), "b": float("inf")}, as_of=world.clock.now)
    assert world.tell(jobs=[progress("a", (5, 2.0)), progress("b", (2, 0.1))]).urgent == {}


def test_a_target_that_was_passed_before_is_not_crossed(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", (1, 0.9))])
    world.clock.now += 1
    world.registry.set_watch({"a": 0.5}, as_of=world.clock.now)
    world.triggers.clear()
    world.tell(jobs=[progress("a", (2, 0.95))])
    assert world.triggers == []


def test_a_falling_metric_crosses_downwards(world: World) -> None:
    world.put(metric={"name": "loss", "direction": "min"})
    world.registry.set_watch({"a": 1.0}, as_of=world.clock.now)
    world.triggers.clear()
    world.tell(jobs=[progress("a", (1, 2.0))])
    assert world.triggers == []
    world.tell(jobs=[progress("a", (2, 0.9))])
    assert world.triggers == ["target crossed"]


def test_a_crossing_while_the_plan_was_made_is_not_missed(world: World) -> None:
    world.put()
    as_of = world.clock.now
    world.clock.now += 0.01
    world.tell(jobs=[progress("a", (1, 0.9))])
    world.triggers.clear()
    world.registry.set_watch({"a": 0.5}, as_of=as_of)
    assert world.triggers == ["target crossed"]
