"""A plan and a look at the rules at the same time: neither waits for the other without end, and neither is wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.plane import Dataplane
from controller.dataplane.rule_table import MOST_CROSSED
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import held_rules, make_plane, ready, rules_for, wanted_rules
from tests.support.controller.dataplane.fake_datapath import FakeDatapath

ONE, OTHER = rules_for({"a": 0, "b": 1}), rules_for({"a": 0, "c": 1})
LATE = 0.1
PATIENT = 2.0
"""A reading of rules that waits for a plan to go by is answered after this time at the latest."""
TURN = LATE / 10


class Slow(FakeDatapath):
    """Says late what its rules were when it was asked, once ``late`` is set, and all else at once.

    With ``patience`` an answer that tells of rules waits until a plan has been sent, but no longer than that. So what a
    test sees does not depend on how fast the machine is.
    """

    late = 0.0
    patience = 0.0
    asked = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.plans_meanwhile: list[bool] = []
        """For each reading of rules: whether a plan was sent before its answer came."""

    def _reply(self, reply: Any, to: Any) -> None:
        reply.xid = to.xid
        if isinstance(reply, parser.OFPFlowStatsReply | parser.OFPAggregateStatsReply) and self.late:
            self.asked += 1
            hub.spawn_after(self.late, self._deliver_late, reply, len(self.flow_mods()))
        else:
            self.deliver(reply)

    def _deliver_late(self, reply: Any, sent: int) -> None:
        if isinstance(reply, parser.OFPFlowStatsReply):
            # Turns, and no clock: a process that stood still has let nobody send.
            turns = round(self.patience / TURN)
            while len(self.flow_mods()) == sent and turns > 0:
                hub.sleep(TURN)
                turns -= 1
            self.plans_meanwhile.append(len(self.flow_mods()) > sent)
        self.deliver(reply)


@pytest.fixture
def plane() -> Iterator[Dataplane]:
    made = make_plane(audit_seconds=0.02, answer_seconds=2 * PATIENT)
    yield made
    made.close()


def started(plane: Dataplane, patience: float = 0.0) -> Slow:
    switch = Slow(1, plane.deliver)
    plane.connected(switch)
    ready(plane)
    assert plane.apply(ONE).errors == ()
    switch.late, switch.patience = LATE, patience
    return switch


def test_a_plan_does_not_wait_for_a_look_which_then_says_nothing(plane: Dataplane) -> None:
    switch = started(plane, PATIENT)
    for rules in (OTHER, ONE):
        asked = switch.asked
        wait_until(lambda asked=asked: switch.asked > asked, sleep=hub.sleep)
        began = time.monotonic()
        assert plane.apply(rules).errors == ()
        assert time.monotonic() - began < PATIENT / 2
        assert held_rules(switch) == wanted_rules(rules)
    switch.patience = 0.0
    # The answers that tell of the rules before are there by now, and so are those to the looks begun again.
    asked = switch.asked
    wait_until(lambda: switch.asked >= asked + 3, sleep=hub.sleep)
    assert (plane.status()[0].repairs, plane.status()[0].ready) == (0, True)
    assert held_rules(switch) == wanted_rules(ONE)


def test_no_plan_waits_while_rules_are_read(plane: Dataplane) -> None:
    switch = started(plane, PATIENT)
    switch.plans_meanwhile.clear()
    number = 0
    while len(switch.plans_meanwhile) < 3 * MOST_CROSSED:
        number += 1
        assert plane.apply(OTHER if number % 2 else ONE).errors == ()
        hub.sleep(LATE / 4)
    assert all(switch.plans_meanwhile), "each reading saw a plan go by"
    assert (plane.status()[0].repairs, plane.status()[0].ready) == (0, True)


def test_plans_without_end_keep_no_look_from_its_end(plane: Dataplane) -> None:
    switch = started(plane)
    lost = next(key for key, m in switch.table.items() if m.cookie & 0xFFFFFFFF and (*key, m.cookie & 0xFFFFFFFF) in
                wanted_rules(ONE) & wanted_rules(OTHER))  # fmt: skip
    del switch.table[lost]

    def plans() -> None:
        while True:
            for rules in (OTHER, ONE):
                plane.apply(rules)
                hub.sleep(LATE / 4)

    thread = hub.spawn(plans)
    wait_until(lambda: lost in switch.table, sleep=hub.sleep)
    wait_until(lambda: plane.status()[0].repairs >= 1, sleep=hub.sleep)
    hub.kill(thread)
