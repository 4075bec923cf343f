"""New settings while switches are connected: what differs is changed at once, what is the same is not touched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.plane import Dataplane
from controller.dataplane.queues.ovsdb import Database
from controller.dataplane.queues.ovsdb_select import OvsdbError, select
from controller.dataplane.values import Settings
from controller.model import Snapshot
from controller.rules.compiler import compile_rules
from controller.rules.fabric import Link
from controller.rules.rule import Rule
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import (
    HOSTS,
    base,
    connect,
    held_rules,
    ready,
    rules_for,
    wanted_rules,
)
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath
from tests.support.controller.dataplane.ovsdb_server import OvsdbServer

QUICK = Settings(queues="existing", answer_seconds=0.2, retry_seconds=0.05, audit_seconds=60.0, queue_seconds=60.0)
"""With these only the news of a change makes a session look at its ports."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OvsdbServer]:
    made = OvsdbServer(tmp_path / "s1", 1)
    yield made
    made.close()


@pytest.fixture
def managed(server: OvsdbServer) -> Settings:
    return replace(QUICK, queues="managed", ovsdb=server.address, rates_bps=MappingProxyType({(1, 2): 50e6}))


class World:
    """A dataplane, one switch, and the news that the listeners were told since the switch was ready."""

    def __init__(self, settings: Settings, behaviour: Behaviour | None = None) -> None:
        self.settings = settings
        self.plane = Dataplane(settings, base)
        self.switch: FakeDatapath = connect(self.plane, behaviour=behaviour)
        ready(self.plane)
        self.news: list[str] = []
        self.plane.subscribe(self.news.append)
        self.switch.messages.clear()

    def change(self, **settings: Any) -> None:
        self.settings = replace(self.settings, **settings)
        self.plane.change(self.settings)

    def probes(self) -> int:
        return sum(isinstance(message, parser.OFPPacketOut) for message in self.switch.messages)

    def gates(self) -> list[int]:
        mods = [message for message in self.switch.messages if isinstance(message, parser.OFPFlowMod)]
        return [message.hard_timeout for message in mods if message.hard_timeout]

    def close(self) -> None:
        self.plane.close()


def floors(server: OvsdbServer, port: str) -> list[int]:
    """Returns the minimum rates of a port's queues in bit/s, by queue."""
    return [
        int(server.vsctl("get", "queue", queue, "other_config:min-rate").strip().strip('"'))
        for queue in queue_ids(server, port)
    ]


def qos(server: OvsdbServer, port: str) -> str:
    return server.vsctl("get", "port", port, "qos").strip()


def queue_ids(server: OvsdbServer, port: str) -> list[str]:
    return [server.vsctl("get", "qos", qos(server, port), f"queues:{number}").strip() for number in range(8)]


def versions(server: OvsdbServer, port: str) -> set[str]:
    """Returns the versions of a port's rows: the database gives a row another one at each change."""
    columns = ("_uuid", "_version")
    state = select(server.address, {"QoS": columns, "Queue": columns})
    own = {qos(server, port), *queue_ids(server, port)}
    return {row["_version"] for rows in state.values() for row in rows if row["_uuid"] in own}


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if "somebody else" in message or "not ready" in message]


@pytest.mark.parametrize(
    "fixed",
    [{"classes": 3}, {"queues": "managed"}, {"ovsdb": "tcp:127.0.0.1"}, {"answer_seconds": 9.0, "audit_seconds": 9.0}],
    ids="+".join,
)
def test_what_cannot_change_is_named_and_nothing_has_changed(fixed: dict[str, Any]) -> None:
    world = World(QUICK)
    with pytest.raises(ValueError, match=f"cannot change {', '.join(fixed)}; restart the controller"):
        world.plane.change(replace(QUICK, gate_seconds=30, untrusted=frozenset({(1, 1)}), **fixed))
    assert world.plane.switches()[0].trusted_ports is None
    world.plane.renew_gates()
    assert world.gates() == [15]
    world.close()


def test_settings_that_are_the_same_change_nothing(server: OvsdbServer, managed: Settings) -> None:
    world = World(managed)
    before = versions(server, "eth1"), versions(server, "eth2")
    world.change()
    wait_until(lambda: world.switch.messages, sleep=hub.sleep)
    hub.sleep(0.3)
    assert (versions(server, "eth1"), versions(server, "eth2")) == before
    assert (world.news, world.probes(), world.gates(), world.switch.flow_mods()) == ([], 0, [], [])
    world.close()


def test_another_rate_changes_that_ports_queues_in_place_and_no_other_ports(
    server: OvsdbServer, managed: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(managed)
    rows = qos(server, "eth2"), queue_ids(server, "eth2")
    other = versions(server, "eth1")
    assert floors(server, "eth2") == [5_000_000, *[500_000] * 7]
    world.change(rates_bps=MappingProxyType({(1, 2): 40e6}))
    wait_until(lambda: floors(server, "eth2") == [4_000_000, *[400_000] * 7], sleep=hub.sleep)
    hub.sleep(0.1)
    assert (qos(server, "eth2"), queue_ids(server, "eth2")) == rows
    assert versions(server, "eth1") == other
    assert (world.probes(), world.news, world.plane.status()[0].repairs, said(caplog)) == (0, [], 0, [])
    assert [proof.problem for proof in world.plane.status()[0].ports] == [None, None]
    world.close()


def test_other_floors_change_the_rows_that_hold_them_and_prove_nothing_again(
    server: OvsdbServer, managed: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(managed)
    rows = qos(server, "eth1"), queue_ids(server, "eth1")
    before = versions(server, "eth1")
    world.change(other_floor=0.2)
    wait_until(lambda: floors(server, "eth1") == [20_000_000, *[1_000_000] * 7], sleep=hub.sleep)
    assert len(before - versions(server, "eth1")) == 1, "only the row of the queue of all other traffic"
    world.change(job_floor=0.02)
    wait_until(lambda: floors(server, "eth1") == [20_000_000, *[2_000_000] * 7], sleep=hub.sleep)
    world.change(job_floor=0.01, other_floor=0.1)
    wait_until(lambda: floors(server, "eth1") == [10_000_000, *[1_000_000] * 7], sleep=hub.sleep)
    hub.sleep(0.1)
    assert (qos(server, "eth1"), queue_ids(server, "eth1")) == rows
    assert (world.probes(), world.news, world.plane.status()[0].repairs, said(caplog)) == (0, [], 0, [])
    world.close()


def test_a_change_while_queues_are_being_changed_is_no_change_by_somebody_else(
    server: OvsdbServer, managed: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = Database.run
    world = World(managed)

    def run_and_change(self: Database, *arguments: str) -> str:
        monkeypatch.setattr(Database, "run", run)
        done = run(self, *arguments)
        world.change(other_floor=0.3)
        return done

    monkeypatch.setattr(Database, "run", run_and_change)
    world.change(other_floor=0.2)
    wait_until(lambda: floors(server, "eth1")[0] == 30_000_000, sleep=hub.sleep)
    hub.sleep(0.1)
    assert (world.plane.status()[0].repairs, said(caplog)) == (0, [])
    world.close()


def test_a_change_that_the_database_refuses_is_that_ports_problem_until_it_is_done(
    server: OvsdbServer, managed: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = Database.run
    world = World(managed)
    refused = qos(server, "eth2")

    def refuse(self: Database, *arguments: str) -> str:
        if refused in arguments:
            raise OvsdbError("constraint violation")
        return run(self, *arguments)

    monkeypatch.setattr(Database, "run", refuse)
    world.change(rates_bps=MappingProxyType({(1, 1): 40e6, (1, 2): 40e6}))
    (problem,) = wait_until(lambda: world.plane.status()[0].problems, sleep=hub.sleep)
    assert "port eth2: its queues could not be changed: constraint violation" in problem
    assert (floors(server, "eth1")[0], floors(server, "eth2")[0]) == (4_000_000, 5_000_000)
    monkeypatch.setattr(Database, "run", run)
    world.plane.ports_changed(world.switch)
    wait_until(lambda: not world.plane.status()[0].problems, sleep=hub.sleep)
    assert floors(server, "eth2")[0] == 4_000_000
    assert (world.news, world.plane.status()[0].repairs, said(caplog)) == ([], 0, [])
    world.close()


def test_a_change_while_the_database_is_away_is_made_when_it_is_back(
    server: OvsdbServer, managed: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = Database.read
    world = World(managed)

    def fail(_: Database) -> Any:
        raise OvsdbError("it is away")

    monkeypatch.setattr(Database, "read", fail)
    world.change(other_floor=0.2)
    (problem,) = wait_until(lambda: world.plane.status()[0].problems, sleep=hub.sleep)
    assert problem == "its queues cannot be compared with its database: it is away"
    monkeypatch.setattr(Database, "read", read)
    world.plane.ports_changed(world.switch)
    wait_until(lambda: not world.plane.status()[0].problems, sleep=hub.sleep)
    assert floors(server, "eth1")[0] == 20_000_000
    assert (world.probes(), world.news, world.plane.status()[0].repairs, said(caplog)) == (0, [], 0, [])
    world.close()


def test_a_change_by_somebody_else_is_still_told_after_new_settings(server: OvsdbServer, managed: Settings) -> None:
    world = World(managed)
    world.change(other_floor=0.2)
    wait_until(lambda: floors(server, "eth1")[0] == 20_000_000, sleep=hub.sleep)
    server.vsctl("set", "qos", qos(server, "eth1"), "other_config:max-rate=1000000")
    world.plane.ports_changed(world.switch)
    wait_until(lambda: world.plane.status()[0].repairs == 1, sleep=hub.sleep)
    assert world.probes() == 0
    world.close()


def test_another_time_of_the_gate_is_sent_at_once() -> None:
    world = World(QUICK)
    world.change(gate_seconds=40)
    assert world.gates() == [], "the call waits for nothing"
    wait_until(lambda: world.gates() == [40], sleep=hub.sleep)
    hub.sleep(0.1)
    assert (world.gates(), world.news) == ([40], [])
    world.close()


def test_other_untrusted_ports_are_told_and_only_the_rules_that_differ_are_sent() -> None:
    world = World(QUICK)
    plane = world.plane
    of_jobs = frozenset(rule for rule in rules_for({"a": 0}) if rule.job is not None)

    def plan() -> frozenset[Rule]:
        shot = Snapshot(0.0, HOSTS, (), switches=plane.switches())
        return compile_rules(shot, {}, mode="marked", forwarding="normal") | of_jobs

    before = plan()
    plane.apply(before)
    world.switch.messages.clear()
    world.change(untrusted=frozenset({(1, 1)}))
    wait_until(lambda: world.news, sleep=hub.sleep)
    assert world.news == [f"switch {1:016x} has other inner, trusted or control ports"]
    assert plane.switches()[0].trusted_ports == {2}
    after = plan()
    assert before != after
    applied = plane.apply(after)
    assert applied.errors == ()
    assert applied.flow_mods == len({rule.key for rule in before ^ after}) < len(after)
    assert held_rules(world.switch) == wanted_rules(after)
    assert world.probes() == 0
    world.change(untrusted=frozenset(), links=(Link(1, 2, 7, 1),))
    wait_until(lambda: len(world.news) == 2, sleep=hub.sleep)
    assert (plane.switches()[0].inner_ports, plane.switches()[0].trusted_ports) == ({2}, None)
    world.close()


def test_a_proof_that_is_wanted_now_is_made_and_the_switch_stays_ready() -> None:
    world = World(replace(QUICK, probe=False))
    assert world.plane.status()[0].ports == ()
    world.change(probe=True)
    wait_until(lambda: [proof.problem for proof in world.plane.status()[0].ports] == [None, None], sleep=hub.sleep)
    assert world.probes() > 0
    world.change(probe=False)
    wait_until(lambda: world.plane.status()[0].ports == (), sleep=hub.sleep)
    assert world.news == []
    world.close()


def test_a_proof_that_is_wanted_now_and_fails_ends_the_readiness() -> None:
    world = World(replace(QUICK, probe=False), Behaviour(obeys_queue=False))
    world.change(probe=True)
    wait_until(lambda: not world.plane.status()[0].ready, sleep=hub.sleep)
    assert "the switch ignores set_queue" in world.news[0]
    world.close()


def test_a_switch_that_connects_later_is_treated_by_the_new_settings() -> None:
    world = World(QUICK)
    world.change(gate_seconds=40, untrusted=frozenset({(2, 1)}))
    later = connect(world.plane, 2)
    ready(world.plane, 1, 2)
    assert [m.hard_timeout for m in later.table.values() if m.hard_timeout] == [40]
    assert world.plane.switches()[1].trusted_ports == {2}
    world.close()
