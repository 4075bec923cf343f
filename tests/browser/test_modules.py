"""The console's pure modules, called in the browser: how numbers are written, and what events make of the state."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page

from controller.cli.console.moment import Moment
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
  const classes = [...state.classes];
  const known = [...state.jobs.values()];
  return {
    jobs, classes, lines: [...lines], log: log.length, problems, hosts: [...hosts.keys()],
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
        ("duration", [0.9996], "1 s"),
        ("duration", [59.96], "1 min"),
        ("duration", [3599.4], "59 min 59 s"),
        ("duration", [3599.7], "1 h"),
        ("duration", [86380], "1 d"),
        ("duration", [4500], "1 h 15 min"),
        ("duration", [90000], "1 d 1 h"),
        ("duration", [-90], "-1 min 30 s"),
        ("duration", [None], "–"),
        ("bytes", [999], "999 B"),
        ("bytes", [1.5e9], "1.5 GB"),
        ("rate", [25e9], "25 Gbit/s"),
        ("pace", [1.24, "iteration"], "1.2 iterations/s"),
        ("pace", [0.05, "epoch"], "3 epochs/min"),
        ("pace", [0.001, "epoch"], "3.6 epochs/h"),
        ("percent", [0.125, 1], "12.5 %"),
        ("percent", [-0.0003], "0 %"),
        ("number", [0.12345], "0.123"),
        ("number", [1234567], "1,234,567"),
        ("moment", [61.27], "1:01.3"),
        ("counted", [1, "job"], "1 job"),
        ("counted", [2, "class", "classes"], "2 classes"),
        ("names", [["a", "b", "c"]], "a, b and c"),
        ("names", [["a", "b", "c", "d", "e"]], "a, b, c and 2 more"),
    ]
    found = [call(page, "ui/format.js", name, *values) for name, values, _ in said]
    assert [text.replace("\u00a0", " ") for text in found] == [text for *_, text in said]


@pytest.mark.parametrize(("name", "value"), [("duration", 12.6), ("bytes", 2e6), ("rate", 1e9), ("percent", 0.5)])
def test_a_number_and_its_unit_stay_in_one_line(page: Page, name: str, value: float) -> None:
    assert "\u00a0" in call(page, "ui/format.js", name, value)
    assert " " not in call(page, "ui/format.js", name, value)


def test_switches_are_above_their_hosts_and_spines_above_leaves(page: Page) -> None:
    places = page.evaluate(
        "async (network) => [...(await import('/console/js/data/graph.js')).arrange(network).nodes]", NETWORK
    )
    at = {name: (place["x"], place["y"]) for name, place in places}
    assert len(at) == 7
    assert at["spine"][1] < at["leaf1"][1] == at["leaf2"][1] < min(at[f"h{i}"][1] for i in range(4))
    assert len(set(at.values())) == 7, "no two at one place"
    assert max(at["h0"][0], at["h2"][0]) < min(at["h1"][0], at["h3"][0]), "beside those of the same switch"


def test_lines_to_hosts_of_lower_rows_go_between_the_hosts_above(page: Page) -> None:
    network = {
        "hosts": [{"name": f"h{i}"} for i in range(50)],
        "switches": [{"dpid": "leaf"}],
        "links": [{"a": {"node": f"h{i}", "port": None}, "b": {"node": "leaf", "port": i}} for i in range(50)],
    }
    places = dict(
        page.evaluate(
            "async (network) => [...(await import('/console/js/data/graph.js')).arrange(network, 700).nodes]", network
        )
    )
    hosts = {name: (place["x"], place["y"]) for name, place in places.items() if place["kind"] == "host"}
    assert len({y for _, y in hosts.values()}) > 2, "there are several rows"
    for name, end in hosts.items():
        line = [(places["leaf"]["x"], places["leaf"]["y"]), *map(tuple, places[name]["via"]), end]
        near = {
            other
            for other, at in hosts.items()
            for corner, next_corner in pairwise(line)
            if other != name and distance(at, corner, next_corner) < 12
        }
        assert near == set(), name


def distance(at: tuple[float, float], start: tuple[float, float], end: tuple[float, float]) -> float:
    """Returns how far a point is from a line."""
    (x, y), (left, top), (right, bottom) = at, start, end
    size = (right - left) ** 2 + (bottom - top) ** 2
    share = min(1.0, max(0.0, ((x - left) * (right - left) + (y - top) * (bottom - top)) / size))
    return math.hypot(x - left - share * (right - left), y - top - share * (bottom - top))


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


def run_of_classes() -> list[dict[str, Any]]:
    """Returns events: ``a`` and ``b`` run, ``a`` leaves the plan and comes back, and ``b`` leaves it and is removed."""

    def job(name: str, state: str = "running") -> dict[str, Any]:
        progress = {"iterations_done": 1, "last_metric": None}
        return {"id": name, "state": state, "progress": progress, "service_class": None, "targets": {}}

    def plan(**classes: int) -> dict[str, Any]:
        return {"policy": "las", "order": [[name] for name in classes], "classes": classes}

    told: list[tuple[str, dict[str, Any]]] = [
        ("job", job("a")), ("job", job("b")), ("plan", plan(a=1, b=2)), ("job", job("a", "lost")), ("plan", plan(b=0)),
        ("plan", plan(b=0)), ("job", job("a")), ("plan", plan(a=3)), ("job", job("b", "removed")), ("plan", plan(a=3)),
    ]  # fmt: skip
    return [{"id": i, "event": kind, "time": float(i), "data": data} for i, (kind, data) in enumerate(told)]


def test_a_job_that_leaves_the_plan_has_no_class_from_then_on(page: Page) -> None:
    events = run_of_classes()
    assert page.evaluate(REPLAY, events[:7])["classes"] == [["a", [[2, 1], [4, None]]], ["b", [[2, 2], [4, 0]]]]
    assert page.evaluate(REPLAY, events)["classes"] == [["a", [[2, 1], [4, None], [7, 3]]]]
    moment = Moment()
    for event in events:
        moment.apply(event)
    assert moment.document()["classes"] == [("a", [[2, 1], [4, None], [7, 3]])]


def test_the_classes_over_time_end_where_a_job_left_the_plan(page: Page) -> None:
    def intervals(*log: tuple[float, int | None]) -> Any:
        found = call(page, "data/class_history.js", "classIntervals", log, 10.0)
        return [(one["from"], one["to"], one["service"]) for one in found]

    assert intervals((1, 2), (3, 0)) == [(1, 3, 2), (3, 10, 0)]
    assert intervals((1, 2), (3, None), (5, 1)) == [(1, 3, 2), (3, 5, None), (5, 10, 1)]
    assert intervals((1, 2), (3, None)) == [(1, 3, 2)]
    assert intervals((1, 2), (30, 1)) == [(1, 30, 2), (30, 30, 1)], "the clock was set back"
    history = {"jobs": {"a": {"service_class": [None, 1, 1, None]}}, "since": 100, "step_seconds": 5}
    state = {"history": history, "jobs": [{"id": "a", "service_class": None}]}
    told = """async ([state]) => {
      const { classHistory } = await import("/console/js/data/class_history.js");
      return classHistory({ ...state, classes: new Map(), jobs: new Map(state.jobs.map((one) => [one.id, one])) }, "a");
    }"""
    assert page.evaluate(told, [state]) == [[105, 1], [115, None]]
    state["jobs"] = [{"id": "a", "service_class": 1}]
    assert page.evaluate(told, [state]) == [[105, 1]], "its newest sample is to come"
    state["jobs"] = [{"id": "a", "service_class": 1, "arrival": 107}]
    assert page.evaluate(told, [state]) == [[107, 1]], "it came in the middle of a step"
    state["jobs"] = [{"id": "a", "service_class": 1, "arrival": 1.8e9}]
    assert page.evaluate(told, [state]) == [[105, 1]], "its arrival is by another clock"


def test_a_class_is_steady_or_is_told_by_its_mean(page: Page) -> None:
    def steadiness(*log: tuple[float, int | None], now: float) -> Any:
        return call(page, "data/class_history.js", "steadiness", log, now)

    assert steadiness(now=10.0) is None
    assert steadiness((1, 2), now=500.0) == {"since": 1, "changes": 0, "mean": 2}
    assert steadiness((1, 2), (30, 0), now=40.0) == {"since": 30, "changes": 1, "mean": 58 / 39}
    flips = [(float(second), second % 2) for second in range(200)]
    assert steadiness(*flips, now=200.0) == {"since": 199, "changes": 60, "mean": 0.5}
    assert steadiness((0, 4), (190, None), (195, 0), now=200.0) == {"since": 195, "changes": 2, "mean": 4 * 50 / 55}


def test_the_controllers_clock_is_followed_when_it_is_set_back(page: Page) -> None:
    """Each event has its time, and this machine's time when it came. Returns what is to be added after each."""
    told = """async ([times]) => {
      const { Offset } = await import("/console/js/data/offset.js");
      const offset = new Offset();
      return [offset.seconds, ...times.map(([time, local]) => (offset.take(time, local), offset.seconds))];
    }"""
    assert page.evaluate(told, [[[100, 0], [101, 3], [110, 10]]]) == [0, 100, 100, 100], "one came late"
    assert page.evaluate(told, [[[100, 0], [50, 2], [60, 11]]]) == [0, 100, 48, 49], "it was set back far"
    little = [[100 + t - (0.5 if t > 5 else 0), t] for t in range(0, 200, 5)]
    assert page.evaluate(told, [little])[-1] == 99.5, "it was set back by less than the time between events"
    again = [[100, 0], [105, 5], [70, 10], [71, 10], [72, 10], [110, 10]]
    assert page.evaluate(told, [again])[-1] == 100, "what is sent again is old"


def test_ordering_cannot_help_only_where_all_is_known(page: Page) -> None:
    apart = with_demand(("a", "h1", "h2"), ("b", "h3", "h4"))
    state = {"network": {"links": LINKS}, "jobs": apart}
    assert page.evaluate(SELECT, ["contended", state]) == []
    fabric = [*LINKS, {"a": {"node": "s1", "port": 9}, "b": {"node": "s2", "port": 9}}]
    for unknown in ({"network": {"links": fabric}}, {"network": None}, {"jobs": [*apart, {"id": "c", "spec": None}]}):
        assert page.evaluate(SELECT, ["contended", state | unknown]) is None
    meeting = {"jobs": [*apart, *with_demand(("c", "h1", "h5"))]}
    assert page.evaluate(SELECT, ["contended", state | meeting]) == [["h1 egress", ["a", "c"]]]


def test_what_a_host_sends_is_known_in_all_classes_together(page: Page) -> None:
    link = {
        **LINKS[0], "a_to_b_bps": 1e9, "b_to_a_bps": 1e9, "a_to_b_load_bps": None, "b_to_a_load_bps": {"0": 1e8},
        "a_to_b_total_bps": 4e8, "problems": [],
    }  # fmt: skip
    sent, received = call(page, "data/select.js", "directions", {"links": [link]})
    assert (sent["port"], sent["load"], sent["total"], sent["use"]) == ("h0 egress", None, 4e8, 0.4)
    assert (received["port"], received["total"], received["use"]) == ("h0 ingress", 1e8, 0.1)
    del link["a_to_b_total_bps"]
    sent, _ = call(page, "data/select.js", "directions", {"links": [link]})
    assert (sent["total"], sent["use"]) == (None, None), "an earlier controller does not count it"


def test_a_job_waits_less_or_longer_than_in_another_plan_whatever_its_class(page: Page) -> None:
    """``a`` keeps its class when ``b`` passes it, ``c`` has nobody before it and shares, and ``alone`` meets nobody."""

    def plan(classes: dict[str, int], **waits: tuple[float, float]) -> dict[str, Any]:
        seconds = {job: {"seconds_before": wait[0], "seconds_beside": wait[1]} for job, wait in waits.items()}
        return {"order": [[job] for job in classes], "classes": classes, "waits": seconds}

    now = plan({"a": 1, "b": 2, "c": 3, "alone": 0}, a=(0, 0), b=(4, 0), c=(8, 0), alone=(0, 0))
    other = plan({"b": 0, "a": 1, "c": 1, "alone": 2}, a=(3, 0), b=(0, 0), c=(0, 9), alone=(0, 0))
    told = """async ([plan, other]) => (await import("/console/js/data/moves.js")).compared(plan, other).flat()"""
    moves = {one["job"]: one["move"] for one in page.evaluate(told, [other, now])}
    assert moves == {"b": "less", "a": "longer", "c": "longer", "alone": "same"}
    moves = {one["job"]: one["move"] for one in page.evaluate(told, [now, other])}
    assert moves == {"b": "longer", "a": "less", "c": "less", "alone": "same"}
    (new,) = page.evaluate(told, [plan({"a": 0}), plan({})])
    assert new["move"] == "new"
    nearly = plan({"a": 0}, a=(1000, 0)), plan({"a": 0}, a=(990, 0))
    assert [one["move"] for one in page.evaluate(told, nearly)] == ["same"]


def waiting(*jobs: tuple[str, int | None, list[tuple[str, str, float]]], **state: Any) -> dict[str, Any]:
    """Returns a state with running jobs, first served first: name, class, and the bytes from host to host."""
    known = [
        {"id": name, "service_class": service, "spec": {"demand": [demand(*one) for one in sent]}}
        for name, service, sent in jobs
    ]
    order = [[name] for name, service, _ in jobs if service is not None]
    return {"jobs": known, "network": None, "plan": {"order": order}} | state


def demand(src: str, dst: str, size: float) -> dict[str, Any]:
    return {"src": src, "dst": dst, "bytes": size}


SLOW = {"a": {"node": "h9", "port": None}, "b": {"node": "s1", "port": 9}, "a_to_b_bps": 1e6, "b_to_a_bps": 1e6}
IN_H1 = [("h2", "h1", 5.0)]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (waiting(("a", 0, IN_H1), ("b", 1, IN_H1), ("c", 2, IN_H1)), "at h2 egress for a and 1 more"),
        (waiting(("a", 0, IN_H1), ("c", 2, IN_H1)), "at h2 egress for a"),
        (waiting(("a", 1, IN_H1), ("b", 1, IN_H1), ("c", 1, IN_H1)), "at h2 egress, shared with 2 jobs"),
        (waiting(("a", 0, [("h3", "h4", 1.0)]), ("c", 1, IN_H1)), "for nobody"),
        (waiting(("a", 0, IN_H1), ("c", None, IN_H1)), "–"),
        (waiting(("a", 0, IN_H1), ("c", 1, [])), "–"),
        (waiting(("a", 0, IN_H1), ("c", 1, IN_H1), caller={"role": "tenant"}), "–"),
        # It waits at the slow port for longer, although less is sent there.
        (
            waiting(("a", 0, IN_H1), ("b", 0, [("h9", "h3", 1.0)]), ("c", 1, [*IN_H1, ("h9", "h3", 1.0)]),
                    network={"links": [SLOW]}),
            "at h9 egress for b",
        ),
        # It sends most through h1, but those before it need longer at h4.
        (
            waiting(("a", 0, IN_H1), ("b", 0, [("h3", "h4", 50.0)]), ("c", 1, [*IN_H1, ("h5", "h4", 1.0)])),
            "at h4 ingress for b",
        ),
        # It waits longer for the job that shares h2 with it than for the one before it at h4.
        (
            waiting(("a", 0, [("h3", "h4", 3.0)]), ("b", 1, IN_H1), ("c", 1, [*IN_H1, ("h5", "h4", 1.0)])),
            "at h2 egress, shared with 1 job",
        ),
        # What the plan says goes before what is worked out here.
        (
            waiting(("a", 0, IN_H1), ("c", 1, IN_H1))
            | {"plan": {"order": [["a"], ["c"]], "waits": {"c": {"port": "h1 ingress", "first": "a", "before_count": 2,
                        "alike_count": 0, "seconds_before": 4.0}}}},
            "at h1 ingress for a and 1 more",
        ),
    ],
    ids=["two", "one", "beside", "alone", "no-class", "no-traffic", "tenant", "slow-port", "longest", "shared",
         "of-plan"],
)  # fmt: skip
def test_a_job_waits_at_the_port_where_it_waits_for_longest(page: Page, state: dict[str, Any], said: str) -> None:
    found = page.evaluate(
        """async (state) => {
          const { waits, waitsWhere } = await import("/console/js/data/waits.js");
          const jobs = new Map(state.jobs.map((job) => [job.id, { state: "running", ...job }]));
          return waitsWhere(waits({ caller: null, ...state, jobs }), "c");
        }""",
        state,
    )
    assert found == said


def test_what_jobs_wait_for_follows_the_plan_and_their_traffic(page: Page) -> None:
    """The places at ports are kept, and are made anew where a job has another class, is gone, or sends elsewhere."""
    found = page.evaluate(
        """async (state) => {
          const { waits, waitsWhere } = await import("/console/js/data/waits.js");
          const all = new Map(state.jobs.map((job) => [job.id, { state: "running", ...job }]));
          const known = { caller: null, ...state, jobs: all };
          const said = [];
          const say = () => said.push(waitsWhere(waits(known), "c"));
          say();
          all.set("b", { ...all.get("b"), service_class: 3 });
          say();
          all.set("a", { ...all.get("a"), state: "ended" });
          say();
          all.set("b", { ...all.get("b"), service_class: 2 });
          say();
          all.set("b", { ...all.get("b"), spec: { demand: [] } });
          say();
          known.plan = { order: [] };
          say();
          return said;
        }""",
        waiting(("a", 0, IN_H1), ("b", 1, IN_H1), ("c", 2, IN_H1)),
    )
    assert found == [
        "at h2 egress for a and 1 more", "at h2 egress for a", "for nobody", "at h2 egress, shared with 1 job",
        "for nobody", "–",
    ]  # fmt: skip
