"""The meters of control traffic: made before the rules that name them, put back, bounded, and left out without harm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.meters import FIRST, MOST, meter_ports
from controller.dataplane.plane import Dataplane
from controller.dataplane.values import Settings
from controller.model import Snapshot, Switch
from controller.rules.compiler import compile_rules
from controller.rules.rule import Metered, Rule
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import HOSTS, ready
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath

QUICK = Settings(
    queues="existing",
    answer_seconds=0.2,
    retry_seconds=0.05,
    audit_seconds=60.0,
    queue_seconds=0.05,
    control_ports=frozenset({(1, 2), (7, 1)}),
)


def rules_of(*switches: Switch) -> frozenset[Rule]:
    return compile_rules(Snapshot(0.0, HOSTS, (), switches=switches), {}, mode="classified", forwarding="normal")


class World:
    """A dataplane with one switch; it plans anew whenever the dataplane says that a switch has changed."""

    def __init__(self, settings: Settings = QUICK, behaviour: Behaviour | None = None) -> None:
        self.plane = Dataplane(settings, rules_of)
        self.plane.subscribe(lambda _reason: hub.spawn(self.plan))
        self.switch = FakeDatapath(1, self.plane.deliver, behaviour or Behaviour())
        self.plane.connected(self.switch)
        ready(self.plane)

    def plan(self) -> None:
        self.plane.apply(rules_of(*self.plane.switches()))

    def limits(self) -> dict[int, int]:
        return {number: mod.bands[0].rate for number, mod in self.switch.meters.items()}

    def named(self) -> set[int]:
        """The meters that the rules in the switch name."""
        parts = [part for mod in self.switch.table.values() for part in mod.instructions]
        return {part.meter_id for part in parts if isinstance(part, parser.OFPInstructionMeter)}

    def problems(self) -> str:
        return "; ".join(self.plane.status()[0].problems)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.plane.close()


def foreign(number: int, datapath: Any) -> Any:
    return parser.OFPMeterMod(datapath, ofp.OFPMC_ADD, ofp.OFPMF_KBPS, number, [parser.OFPMeterBandDrop(5, 0)])


def test_a_named_port_has_a_meter_of_its_share_and_a_rule_that_names_it(world: World) -> None:
    assert world.limits() == {FIRST: 1000}, "1 % of 100 Mbit/s"
    assert world.plane.switches()[0].control_ports == ((2, FIRST),)
    wait_until(lambda: world.named() == {FIRST}, sleep=hub.sleep)
    assert world.problems() == ""


@pytest.mark.parametrize("how", ["deleted", "changed"])
def test_a_meter_that_somebody_else_deletes_or_changes_is_put_back(world: World, how: str) -> None:
    wait_until(lambda: world.named() == {FIRST}, sleep=hub.sleep)
    if how == "deleted":
        world.switch.delete_meter(FIRST)
    else:
        world.switch.meters[FIRST] = foreign(FIRST, world.switch)
    wait_until(lambda: world.limits() == {FIRST: 1000} and world.named() == {FIRST}, sleep=hub.sleep)
    wait_until(lambda: world.plane.status()[0].repairs > 0, sleep=hub.sleep)
    wait_until(lambda: "somebody else changed it" in world.problems(), sleep=hub.sleep)
    ready(world.plane)


def test_meters_of_others_are_left_alone_and_old_ones_of_ours_are_deleted(world: World) -> None:
    others = {FIRST - 1, FIRST + MOST, 1}
    for number in (*others, FIRST + 5):
        world.switch.meters[number] = foreign(number, world.switch)
    wait_until(lambda: world.switch.meters.keys() == others | {FIRST}, sleep=hub.sleep)


def test_other_settings_change_meters_and_rules_and_take_them_away(world: World) -> None:
    world.plane.change(replace(QUICK, control_share=0.1))
    wait_until(lambda: world.limits() == {FIRST: 10_000}, sleep=hub.sleep)
    world.plane.change(replace(QUICK, control_ports=frozenset({(1, 1), (1, 2)})))
    wait_until(lambda: world.limits().keys() == world.named() == {FIRST, FIRST + 1}, sleep=hub.sleep)
    world.plane.change(replace(QUICK, control_ports=frozenset()))
    wait_until(lambda: not world.limits() and not world.named(), sleep=hub.sleep)
    assert world.plane.status()[0].repairs == 0, "nobody else has changed anything"
    assert world.plane.status()[0].ready


@pytest.mark.parametrize(("meters", "reason"), [(0, "it has no meters"), (1, "it refuses meters")])
def test_a_switch_without_enough_meters_goes_on_and_says_so(meters: int, reason: str) -> None:
    settings = replace(QUICK, control_ports=frozenset({(1, 1), (1, 2)}))
    world = World(settings, Behaviour(meters=meters))
    wait_until(lambda: len(world.named()) == meters, sleep=hub.sleep)
    assert reason in world.problems()
    assert "control traffic of the ports in control_traffic has the place of other packets" in world.problems()
    assert world.plane.status()[0].ready
    world.plane.close()


def test_a_port_that_is_not_there_is_said_and_one_of_another_switch_is_not() -> None:
    world = World(replace(QUICK, control_ports=frozenset({(1, 9), (7, 8)})))
    assert world.problems() == "control_traffic names port 9, which it does not have"
    world.plane.close()


def test_a_switch_of_which_no_port_is_named_is_not_asked_for_meters() -> None:
    world = World(replace(QUICK, control_ports=frozenset({(7, 1)})))
    hub.sleep(0.2)
    assert not [each for each in world.switch.messages if isinstance(each, parser.OFPMeterConfigStatsRequest)]
    world.plane.close()


def test_meters_are_bounded() -> None:
    settings = replace(QUICK, control_ports=frozenset((1, port) for port in range(1, 200)))
    chosen = meter_ports(settings, 1, range(1, 300))
    assert len(chosen) == MOST
    assert {number for _, number in chosen} == set(range(FIRST, FIRST + MOST))


def test_the_rule_names_the_port_and_its_meter() -> None:
    rules = rules_of(Switch(1, control_ports=((9, FIRST),)))
    (rule,) = [rule for rule in rules if any(isinstance(action, Metered) for action in rule.actions)]
    assert (rule.match.in_port, rule.actions[0]) == (9, Metered(FIRST))
