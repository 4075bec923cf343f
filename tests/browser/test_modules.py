"""The console's pure modules, called in the browser: how numbers are written, and what events make of the state."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visits
from tests.support.browser.cluster import Cluster

CALL = "async ([module, name, values]) => (await import(`/console/js/${module}`))[name](...values)"
NETWORK = {
    "hosts": [{"name": f"h{i}"} for i in range(4)],
    "switches": [{"dpid": dpid} for dpid in ("leaf1", "leaf2", "spine")],
    "links": [
        {"a": {"node": f"h{i}", "port": None}, "b": {"node": f"leaf{i % 2 + 1}", "port": i + 1}} for i in range(4)
    ]
    + [{"a": {"node": f"leaf{i}", "port": 9}, "b": {"node": "spine", "port": i}} for i in (1, 2)],
}
REPLAY = """async (events) => {
  const { apply, emptyState } = await import("/console/js/data/state.js");
  const state = emptyState();
  for (const event of events) apply(state, event);
  const jobs = [...state.jobs.values()].map((job) => [job.id, job.state, job.service_class, job.iterations_done]);
  const { lines, log, problems, hosts } = state;
  const { hostsOf, portsOf } = await import("/console/js/data/select.js");
  const known = [...state.jobs.values()];
  return {
    jobs, lines: [...lines], log: log.length, problems, hosts: [...hosts.keys()],
    hosts_of_jobs: known.map(hostsOf), ports_of_jobs: known.map((job) => [...portsOf(job)]),
  };
}"""


SELECT = """async ([name, state, ...plans]) => {
  const select = await import("/console/js/data/select.js");
  const jobs = new Map(state.jobs.map((job) => [job.id, { state: "running", ...job }]));
  const found = select[name](...plans, { caller: null, ...state, jobs });
  return found instanceof Map ? [...found] : found;
}"""
LINKS = [{"a": {"node": f"h{i}", "port": None}, "b": {"node": "s1", "port": i}} for i in range(6)]


def with_demand(*jobs: tuple[str, str, str]) -> list[dict[str, Any]]:
    """Returns jobs by their names, each of which sends from one host to another."""
    return [{"id": name, "spec": {"demand": [{"src": src, "dst": dst, "bytes": 1}]}} for name, src, dst in jobs]


@pytest.fixture
def page(visits: Visits, cluster: Cluster) -> Page:
    return visits(cluster).go("settings", "Settings")


def call(page: Page, module: str, name: str, *values: Any) -> Any:
    return page.evaluate(CALL, [module, name, list(values)])


def test_numbers_have_the_units_that_people_use(page: Page) -> None:
    said: list[tuple[str, list[Any], str]] = [
        ("duration", [0.0000042], "4.2 µs"),
        ("duration", [0.25], "250 ms"),
        ("duration", [8.04], "8 s"),
        ("duration", [59.9], "59.9 s"),
        ("duration", [60], "1 min"),
        ("duration", [3599.7], "1 h"),
        ("duration", [4500], "1 h 15 min"),
        ("duration", [90000], "1 d 1 h"),
        ("duration", [-90], "-1 min 30 s"),
        ("duration", [None], "–"),
        ("bytes", [999], "999 B"),
        ("bytes", [1.5e9], "1.5 GB"),
        ("rate", [25e9], "25 Gbit/s"),
        ("percent", [0.125, 1], "12.5 %"),
        ("number", [0.12345], "0.123"),
        ("number", [1234567], "1,234,567"),
        ("moment", [61.27], "1:01.3"),
        ("counted", [1, "job"], "1 job"),
        ("counted", [2, "class", "classes"], "2 classes"),
        ("names", [["a", "b", "c"]], "a, b and c"),
        ("names", [["a", "b", "c", "d", "e"]], "a, b, c and 2 more"),
    ]
    found = [call(page, "ui/format.js", name, *values) for name, values, _ in said]
    assert found == [text for *_, text in said]


def test_switches_are_above_their_hosts_and_spines_above_leaves(page: Page) -> None:
    places = page.evaluate(
        "async (network) => [...(await import('/console/js/data/graph.js')).arrange(network).nodes]", NETWORK
    )
    at = {name: (place["x"], place["y"]) for name, place in places}
    assert len(at) == 7
    assert at["spine"][1] < at["leaf1"][1] == at["leaf2"][1] < min(at[f"h{i}"][1] for i in range(4))
    assert len(set(at.values())) == 7, "no two at one place"
    assert max(at["h0"][0], at["h2"][0]) < min(at["h1"][0], at["h3"][0]), "beside those of the same switch"


@pytest.mark.parametrize("room", [1000, 340], ids=["wide", "phone"])
@pytest.mark.parametrize("hosts", [3, 24, 60, 1000])
def test_hosts_have_room_for_their_names_on_any_screen(page: Page, room: int, hosts: int) -> None:
    network = {
        "hosts": [{"name": f"h{i}"} for i in range(hosts)],
        "switches": [{"dpid": f"leaf{i}"} for i in range(3)],
        "links": [
            {"a": {"node": f"h{i}", "port": None}, "b": {"node": f"leaf{i % 3}", "port": i}} for i in range(hosts)
        ],
    }
    placed = page.evaluate(
        """async ([network, room]) => {
          const { nodes, ...size } = (await import("/console/js/data/graph.js")).arrange(network, room);
          return [size, [...nodes]];
        }""",
        [network, room],
    )
    size, places = placed
    at = [(place["x"], place["y"]) for name, place in places if name.startswith("h")]
    assert len(at) == hosts
    apart = 20 if size["isDense"] else 34
    rows = {y: sorted(x for x, other in at if other == y) for _, y in at}
    assert all(right - left >= apart for row in rows.values() for left, right in pairwise(row))
    assert all(0 < x < size["width"] and y < size["height"] for x, y in at)
    assert size["width"] == (room if hosts < 1000 or room == 1000 else 600)


def test_a_mere_sign_of_life_counts_as_one(page: Page) -> None:
    heard = """async () => {
      const { follow } = await import("/console/js/data/stream.js");
      const api = { open: async () => new Response(": alive\\nid: 7\\n\\n") };
      const heard = [];
      const calls = { onOpen: () => heard.push("open"), onLife: () => heard.push("life") };
      for await (const event of follow(api, 7, undefined, calls)) heard.push(event);
      return heard;
    }"""
    assert page.evaluate(heard) == ["open", "life"]


def test_a_job_is_what_its_description_says_and_a_new_run_has_a_new_line(page: Page) -> None:
    description = {
        "arrival": 5.0, "user": "ann", "stage": None, "family": "f", "weight": 2.0, "metric": {"name": "loss"},
        "target": None, "compute_seconds": 0.0, "hosts": ["h1", "h2"], "servers": ["h1"],
        "demand": [{"src": "h2", "dst": "h1", "bytes": 8.0}],
    }  # fmt: skip

    def event(number: int, done: float, **more: Any) -> dict[str, Any]:
        progress = {"iterations_done": done, "last_metric": done / 10}
        data = {"id": "a", "state": "running", "progress": progress, "service_class": 0, "targets": {}, **more}
        return {"id": number, "event": "job", "time": float(number), "data": data}

    events = [event(1, 1, description=description), event(2, 7), event(3, 2), event(4, 3)]
    state = page.evaluate(REPLAY, events)
    assert state["lines"] == [["a", [[2, 0.2], [3, 0.3]]]]
    assert state["hosts_of_jobs"] == [["h1", "h2"]]
    assert state["ports_of_jobs"] == [[["h2 egress", 8], ["h1 ingress", 8]]]


def test_events_make_the_state(page: Page) -> None:
    def job(done: float, state: str = "running", metric: float | None = None) -> dict[str, Any]:
        progress = {"iterations_done": done, "last_metric": metric, "iterations_total": 50}
        return {"id": "a", "state": state, "progress": progress, "service_class": None, "targets": {}}

    plan = {"epoch": 3, "policy": "jpas", "order": [["a"]], "classes": {"a": 2}}
    told: list[tuple[str, dict[str, Any]]] = [
        ("job", job(0, "waiting")),
        ("job", job(1, metric=0.1)),
        ("job", job(2, metric=0.2)),
        ("job", job(2, metric=0.2)),
        ("plan", plan),
        ("host", {"name": "h1", "state": "alive", "marks_acknowledgements": False}),
        ("host", {"name": "h2", "state": "alive", "marks_acknowledgements": False}),
        ("host", {"name": "h2", "state": "removed", "marks_acknowledgements": False}),
        ("problem", {"problem": "no switch: gone", "state": "appeared"}),
        ("problem", {"problem": "the journal is full: 3 MB", "state": "appeared"}),
        ("problem", {"problem": "no switch: another cause", "state": "gone"}),
        ("one of a later version", {}),
    ]
    events = [{"id": i, "event": kind, "time": float(i), "data": data} for i, (kind, data) in enumerate(told)]
    state = page.evaluate(REPLAY, events)
    assert state["jobs"] == [["a", "running", 2, 2]]
    assert state["lines"] == [["a", [[1, 0.1], [2, 0.2]]]]
    assert state["log"] == len(told) - 2, "progress alone is no news"
    assert state["problems"] == ["the journal is full: 3 MB"]
    assert state["hosts"] == ["h1"]
    removal = {"id": 99, "event": "job", "time": 99.0, "data": job(2, "removed")}
    assert page.evaluate(REPLAY, [*events, removal])["jobs"] == []


def test_ordering_cannot_help_only_where_all_is_known(page: Page) -> None:
    apart = with_demand(("a", "h1", "h2"), ("b", "h3", "h4"))
    state = {"network": {"links": LINKS}, "jobs": apart}
    assert page.evaluate(SELECT, ["contended", state]) == []
    fabric = [*LINKS, {"a": {"node": "s1", "port": 9}, "b": {"node": "s2", "port": 9}}]
    for unknown in ({"network": {"links": fabric}}, {"network": None}, {"jobs": [*apart, {"id": "c", "spec": None}]}):
        assert page.evaluate(SELECT, ["contended", state | unknown]) is None
    meeting = {"jobs": [*apart, *with_demand(("c", "h1", "h5"))]}
    assert page.evaluate(SELECT, ["contended", state | meeting]) == [["h1 egress", ["a", "c"]]]


def test_a_job_moves_where_others_pass_it_at_its_ports(page: Page) -> None:
    """``a`` keeps its class when ``b`` passes it, and ``alone`` meets nobody, whatever its class."""
    jobs = with_demand(("a", "h1", "h2"), ("b", "h1", "h3"), ("alone", "h4", "h5"))
    state = {"network": {"links": LINKS}, "jobs": jobs}
    now = {"order": [["a"], ["b"], ["alone"]], "classes": {"a": 1, "b": 2, "alone": 0}}
    other = {"order": [["b"], ["a"], ["alone"]], "classes": {"a": 1, "b": 0, "alone": 2}}
    moves = page.evaluate(SELECT, ["compared", state, other, now])
    assert [(one["job"], one["move"]) for band in moves for one in band] == [
        ("b", "earlier"), ("a", "later"), ("alone", "same"),
    ]  # fmt: skip
    moves = page.evaluate(SELECT, ["compared", state | {"network": None}, other, now])
    assert [one["move"] for band in moves for one in band] == ["earlier", "same", "later"], "all may meet"
    (new,) = page.evaluate(
        SELECT, ["compared", state, {"order": [["a"]], "classes": {"a": 0}}, {"order": [], "classes": {}}]
    )
    assert new[0]["move"] == "new"
