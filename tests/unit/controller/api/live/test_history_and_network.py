"""The history and the network of a controller in this process, whose switch counts what the test says."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from typing import Any

import eventlet
import eventlet.tpool
import pytest

from controller.access.caller import Caller, Role, Tenancy
from controller.api.live import history as history_calls
from controller.api.live import writer
from controller.api.live.sampler import Sampler
from controller.dataplane.values import PortProof, SwitchStatus
from controller.events.history import PORT_FIELDS, History, JobSample, texts
from controller.events.rings import SAMPLE_SECONDS, slot_of
from controller.model import Prediction
from controller.wire import HistoryView, Network
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch
from tests.support.controller.api.event_reader import stalled
from tests.support.controller.api.served import Served, served

NOW = 1_700_000_000.0
PORT = f"{1:016x}:2"
HOSTS: list[dict[str, Any]] = [
    {"name": "h1", "address": "10.0.0.1", "switch": "0x1", "port": 1, "egress_bps": 2e9},
    {"name": "h2", "address": "10.0.0.2", "switch": "0x1", "port": 2},
    {"name": "h3", "address": "10.0.0.3"},
]
LINKS = [{"a": "0x1", "a_port": 9, "b": "0x2", "b_port": 8, "rate_bps": 4e9}]


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with served(hosts=HOSTS, links=LINKS) as there:
        monkeypatch.setattr(there.yard.loop, "_clock", clock)
        yield there


def sampled(api: Served, clock: Clock, *counts: int) -> None:
    """Take a sample for each count of bytes, which port 2 sends in class 0."""
    sampler = Sampler(api.services, clock)
    for count in counts:
        api.yard.network.port_bytes = lambda anew=True, count=count: {(1, 2): {0: count, None: 2 * count}}
        api.yard.network.received_bytes = lambda count=count: {(1, 1): 3 * count}
        sampler.sample()
        clock.now += SAMPLE_SECONDS


def report(api: Served, iteration: float, metric: float, sent: float) -> None:
    points = [{"iteration": iteration, "time": time.time(), "metric": metric}]
    part = {"job": "a", "points": points, "sent_bytes": sent}
    assert api.call("POST", "/v1/hosts/h1/reports", batch(part)).ok


def test_samples_of_a_job_and_a_port(api: Served, clock: Clock) -> None:
    api.yard.put("a", 5000)
    report(api, 1, 0.25, 1000.0)
    sampled(api, clock, 0)
    report(api, 2, 0.5, 4000.0)
    sampled(api, clock, 1000, 3000)
    answer = api.call("GET", f"/v1/history?since={NOW:.0f}").json()
    view = HistoryView.model_validate(answer)
    assert (view.since, view.step_seconds, view.steps) == (NOW, 5.0, 4)
    assert view.jobs["a"].bytes == (None, 3000.0, 0.0, None)
    assert view.jobs["a"].iterations_done == (1.0, 2.0, 2.0, None)
    assert view.jobs["a"].metric == (0.25, 0.5, 0.5, None)
    assert view.jobs["a"].t90 == (None,) * 4
    assert view.ports[PORT]["0"] == (None, 1000.0, 2000.0, None)
    assert view.ports[PORT]["other"] == (None, 2000.0, 4000.0, None)
    assert view.ports[PORT]["3"] == (None,) * 4
    wide = HistoryView.model_validate(api.call("GET", f"/v1/history?since={NOW:.0f}&step=12&jobs=a").json())
    assert (wide.step_seconds, wide.steps) == (15.0, 2)
    assert wide.since <= NOW < wide.since + 15
    assert sum(count or 0 for count in wide.jobs["a"].bytes) == 3000.0
    assert set(wide.jobs) == {"a"} and set(wide.ports) == {PORT}
    assert set(api.call("GET", f"/v1/history?jobs=&ports={PORT}").json()["jobs"]) == set()


def test_a_job_without_a_sample_yet_is_left_out(api: Served, clock: Clock) -> None:
    api.yard.put("a", 5000)
    sampled(api, clock, 0)
    api.yard.put("b", 5001)
    answer = api.call("GET", "/v1/history?jobs=a,b")
    assert set(HistoryView.model_validate(answer.json()).jobs) == {"a"}
    assert_problem(api.call("GET", "/v1/history?jobs=a,nobody"), 404, "the history has no job nobody")


def test_a_step_is_at_the_same_moments_whenever_it_is_asked_for(api: Served, clock: Clock) -> None:
    api.yard.put("a", 5000)
    sampled(api, clock, *range(0, 1000, 100))
    first = api.call("GET", f"/v1/history?since={NOW:.0f}&step=20").json()
    later = api.call("GET", f"/v1/history?since={NOW + 7:.0f}&step=20").json()
    assert first["since"] == later["since"]
    assert first["since"] % 20 == 0
    assert first["ports"] == later["ports"]


def test_the_whole_hour_is_as_long_as_it_is_kept(api: Served, clock: Clock) -> None:
    sampled(api, clock, 0, 10)
    answer = api.call("GET", "/v1/history").json()
    assert answer["steps"] == 721
    assert answer["since"] == clock.now - 3600
    future = api.call("GET", f"/v1/history?since={NOW + 99999:.0f}").json()
    assert future["steps"] == 1


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("since=x", "'x' is no number from 0 to 1e+12"),
        ("step=1", "'1' is no number from 5 to 3600"),
        ("step=9999", "is no number from 5 to 3600"),
    ],
)
def test_what_is_wrong_is_named(api: Served, query: str, said: str) -> None:
    assert_problem(api.call("GET", f"/v1/history?{query}"), 422, said, query.partition("=")[0])


def test_an_answer_has_a_size(api: Served, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_calls, "MOST_NUMBERS", 1000)
    sampled(api, clock, 0)
    refused = api.call("GET", "/v1/history?step=5")
    assert_problem(refused, 422, "the answer would be too large; ask for 30 s or more, or for fewer jobs", "step")
    for query in ("?step=30", ""):
        answer = api.call("GET", f"/v1/history{query}").json()
        assert answer["step_seconds"] == 30
        assert answer["steps"] * len(answer["ports"][PORT]) <= 1000
    assert api.call("GET", f"/v1/history?since={NOW:.0f}&step=5").ok


def test_a_target_that_is_never_reached_has_no_iteration_and_the_answer_is_json(api: Served) -> None:
    never = Prediction("t90", 0.9, math.inf, 50.0, math.inf)
    api.services.history.sample(NOW, {"a": JobSample(None, 1.0, 0, 5.0, 0.5, (never,))}, {})

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    answer = json.loads(api.call("GET", "/v1/history?step=3600").text, parse_constant=refuse)
    view = HistoryView.model_validate(answer)
    assert set(view.jobs["a"].t90) == {None}
    assert 5.0 in view.jobs["a"].iterations_done


def test_who_does_not_read_an_answer_holds_a_part_of_it_alone(
    api: Served, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    monkeypatch.setattr(history_calls, "texts", lambda values: made.append(1) or texts(values))
    monkeypatch.setattr(writer, "WRITE_SECONDS", 0.5)
    ports = {(1, port): {0: port} for port in range(400)}
    api.yard.network.port_bytes = lambda: ports
    Sampler(api.services, clock).sample()
    client = eventlet.tpool.execute(stalled, int(api.url.rpartition(":")[2]), path="/v1/history")
    wait_until(lambda: made, sleep=eventlet.sleep, what="the beginning of the answer")
    eventlet.sleep(1.0)
    assert len(made) < 400 * len(PORT_FIELDS) / 2
    with pytest.raises(ConnectionResetError):
        while eventlet.tpool.execute(client.recv, 65536):
            pass
    client.close()
    assert len(api.call("GET", "/v1/history").json()["ports"]) == 400


def test_a_name_that_others_take_while_an_answer_is_read_is_left_out(api: Served) -> None:
    history = History()
    sample = {name: JobSample("ann", 1.0, 0, 1.0, 0.5) for name in ("a", "b")}
    history.sample(NOW, sample, {})
    ann = Caller("ann", Role.TENANT, tenancy=Tenancy(("ann",)))
    slot = slot_of(NOW)
    pieces = history_calls._pieces(history, ann, {"since": NOW}, (slot, 2, 1), jobs=["a", "b"], ports=[])
    read = [next(pieces), next(pieces)]
    history.sample(NOW + SAMPLE_SECONDS, sample | {"b": sample["b"]._replace(user="cem", metric=0.25)}, {})
    assert set(json.loads(b"".join([*read, *pieces]))["jobs"]) == {"a"}


def test_the_network_is_a_graph_with_rates_load_and_proofs(api: Served, clock: Clock) -> None:
    proofs = (PortProof(1, "s1-eth1", {0: 3}), PortProof(2, "s1-eth2", {}, "its queues are not ours"))
    status = SwitchStatus(1, connected=True, ready=True, reason=None, rules=3, bundles=True, ports=proofs)
    api.yard.network.status = lambda: (status,)
    sampled(api, clock, 0, 5000)
    network = Network.model_validate(api.call("GET", "/v1/network").json())
    assert [host.name for host in network.hosts] == ["h1", "h2", "h3"]
    assert [(switch.dpid[-1], switch.connected, switch.reason) for switch in network.switches] == [
        ("1", True, None),
        ("2", False, "not connected"),
    ]
    assert network.switches[0].ports[1].problem == "its queues are not ours"
    one, two, cable = network.links
    assert (one.a.node, one.a.port, one.b.node, one.b.port) == ("h1", None, f"{1:016x}", 1)
    assert (one.a_to_b_bps, one.b_to_a_bps) == (2e9, 1e9)
    assert one.b_to_a_load_bps is one.b_to_a_total_bps is None and one.problems == ()
    assert (one.a_to_b_load_bps, one.a_to_b_total_bps) == (None, 24000.0), "what a host sends has no classes"
    assert two.b_to_a_load_bps is not None
    assert (two.b_to_a_load_bps["0"], two.b_to_a_load_bps["other"]) == (8000.0, 16000.0)
    assert (two.a_to_b_total_bps, two.b_to_a_total_bps) == (None, 24000.0)
    assert two.problems == ("its queues are not ours",)
    assert (cable.a.node[-1], cable.a.port, cable.b.node[-1], cable.b.port) == ("1", 9, "2", 8)
    assert cable.a_to_b_bps == cable.b_to_a_bps == 4e9
