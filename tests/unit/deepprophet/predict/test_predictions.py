"""DeepProphet's middle, worked out by hand: costs, transfers over a described network, an iteration played through."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire import DemandSpec, JobSpec
from deepprophet.costs import costs as costing
from deepprophet.costs.calibration import Collective, Wrapping
from deepprophet.costs.costs import UNSEEN
from deepprophet.costs.measured import Measurement
from deepprophet.errors import InputError
from deepprophet.graph.graph import Graph, Parameter
from deepprophet.predict import document, network
from deepprophet.predict.document import PredictionReport
from deepprophet.predict.exchange import Transfer, Wire
from deepprophet.predict.network import GOODPUT, HostSpec, Load, NetworkSpec, Placement
from deepprophet.predict.prediction import Configuration, predict
from deepprophet.predict.schedule import Plan, Step, play, union
from tests.support.prophet_world import MB, calibration, context, graph, key, operator, roofline

HOST = Collective(message=0.001, byte=1e-9, processor_byte=0.0, low=1.0, high=1.0)


def even(count: int, rate: float = 8e6 / GOODPUT, latency: float = 0.0) -> NetworkSpec:
    """Links on which a megabyte (10^6 bytes) of data takes a second."""
    return network.uniform(count, rate, latency)


def test_cost_from_the_table_by_how_far_its_inputs_are() -> None:
    known = calibration(contexts=(context(near=2.0, far=0.5, byte=1e-3, calls=(0.01, 0.5, 0.5)),))
    known = known.with_table({key(): Measurement(1.0, 3.0, 0.9, 1.3)})
    one = Graph((operator(far=0.25, bytes=40.0),), (), (), 1, "float32")
    (cost,) = costing.costs(one, known, {})
    assert cost.seconds == pytest.approx(2.0 + 2.0 * 0.5 * 0.25 + 0.04 + 0.01)
    assert cost.high - cost.seconds == pytest.approx(2.0 * 0.3)
    assert cost.seconds - cost.low == pytest.approx(2.0 * 0.1)
    assert cost.way == "table"


def test_what_was_just_measured_counts_before_the_table() -> None:
    one = Graph((operator(),), (), (), 1, "float32")
    (cost,) = costing.costs(one, calibration(), {key(): Measurement(0.5, 0.5, 0.5, 0.5)})
    assert (cost.seconds, cost.way) == (0.5, "measured")


def test_roofline_of_the_family_with_its_spread() -> None:
    known = calibration({key(): 1.0}, rooflines=(roofline(once=0.1, flop=1e-3, byte=1e-2),))
    one = Graph((operator(size=9, flops=100.0, bytes=50.0),), (), (), 1, "float32")
    (cost,) = costing.costs(one, known, {})
    assert cost.seconds == pytest.approx(0.1 + 0.1 + 0.5)
    assert (cost.low, cost.high) == (pytest.approx(0.35), pytest.approx(1.4))
    assert cost.way == "roofline"
    assert list(costing.unseen(one, [cost])) == [key(size=9)]


def test_operators_of_unknown_families_are_told_first_and_apart_however_short() -> None:
    known = calibration({key(): 1.0}, rooflines=(roofline(once=0.1, flop=1e-3, byte=1e-2),))
    long = operator(size=9, flops=1e4, bytes=1e4)
    strange = [replace(operator(size=size), family="strange", bytes=size) for size in (2, 3)]
    one = Graph((long, *strange), (), (), 1, "float32")
    unseen = costing.unseen(one, costing.costs(one, known, {}))
    assert list(unseen) == [strange[1].key, strange[0].key, long.key]
    told = dict(document.unseen_facts(unseen))
    assert told["unknown family"].startswith("2 operators")
    assert "[3,3]" in told["unknown family"]
    assert "[9,9]" not in told["unknown family"]
    assert told["never measured"].startswith("1 operator,")
    assert "[9,9]" in told["never measured"]


def test_what_was_measured_is_told_last_and_apart() -> None:
    known = calibration({key(): 1.0}, rooflines=(roofline(once=0.1),))
    one = Graph((operator(size=9), operator(size=10)), (), (), 1, "float32")
    unseen = costing.unseen(one, costing.costs(one, known, {key(size=9): Measurement(5.0, 5.0, 5.0, 5.0)}))
    assert [(name, part.way) for name, part in unseen.items()] == [
        (key(size=10), "roofline"),
        (key(size=9), "measured"),
    ]
    told = dict(document.unseen_facts(unseen))
    assert "[9,9]" in told["measured just now"] and "[9,9]" not in told["never measured"]


def test_other_type_of_number_widens_the_interval() -> None:
    known = calibration(rooflines=(roofline(once=1.0),))
    one = Graph((operator(size=9, dtype="bfloat16"),), (), (), 1, "bfloat16")
    (cost,) = costing.costs(one, known, {})
    assert cost.high == pytest.approx(3.0)


def test_family_never_seen_is_a_guess_with_a_wide_interval() -> None:
    known = calibration(rooflines=(roofline("copy", once=1.0), roofline("pool", once=2.0), roofline("view", once=9.0)))
    one = Graph((operator(name="mine.special.default", family="other"),), (), (), 1, "float32")
    (cost,) = costing.costs(one, known, {})
    assert cost.way == "guess"
    assert cost.high >= UNSEEN * cost.seconds
    assert cost.low <= cost.seconds / UNSEEN


def test_no_roofline_at_all_is_still_an_answer() -> None:
    one = Graph((operator(size=9),), (), (), 1, "float32")
    (cost,) = costing.costs(one, calibration(), {})
    assert cost.way == "guess"


def test_same_shapes_err_together_and_others_do_not() -> None:
    known = calibration().with_table(
        {key(size=n): Measurement(1.0, 1.0, 0.7, 1.3) for n in (8, 9, 10, 11)}
    )  # fmt: skip
    same = Graph(tuple(operator() for _ in range(4)), (), (), 1, "float32")
    other = Graph(tuple(operator(size=n) for n in (8, 9, 10, 11)), (), (), 1, "float32")
    for one, half in ((same, 1.2), (other, 0.6)):
        seconds, low, high = costing.total(costing.costs(one, known, {}), known.contexts[0])
        assert seconds == 4.0
        assert (seconds - low, high - seconds) == (pytest.approx(half), pytest.approx(half))


def test_whole_iterations_error_is_added() -> None:
    known = calibration(contexts=(context(low=0.8, high=1.3),))
    seconds, low, high = costing.total(costing.costs(graph(), known, {}), known.contexts[0])
    assert (low / seconds, high / seconds) == (pytest.approx(0.8), pytest.approx(1.3))


def test_between_two_numbers_of_neighbours() -> None:
    contexts = (context(neighbours=0, near=1.0), context(neighbours=4, near=2.0))
    assert [costing.context_for(contexts, n).near for n in (0, 1, 4, 9)] == [1.0, 1.25, 2.0, 2.0]


def test_ring_sends_its_share_over_every_link() -> None:
    net = even(4, latency=0.01)
    wire = Wire(net, network.place(net, 4, "ring"), "ring", HOST)
    (transfer,) = wire.of_bucket(2e6)
    assert transfer.seconds == pytest.approx(6 * 0.011 + 3.0)
    assert {(d.src, d.dst): d.bytes for d in transfer.demand} == {
        ("h1", "h2"): 3e6, ("h2", "h3"): 3e6, ("h3", "h4"): 3e6, ("h4", "h1"): 3e6,
    }  # fmt: skip


def test_servers_link_is_shared_by_all_workers_and_several_servers_share_the_bytes() -> None:
    net = even(4)
    alone = Wire(net, network.place(net, 3, "ps"), "ps")
    assert alone.placement.ps == ("h4",)
    push, pull = alone.of_bucket(1e6)
    assert push.seconds == pull.seconds == pytest.approx(3.0)
    assert push.links.isdisjoint(pull.links)
    two = Wire(net, Placement(("h1", "h2"), ("h3", "h4")), "ps")
    assert two.of_bucket(1e6)[0].seconds == pytest.approx(1.0)


def test_worker_beside_its_server_crosses_no_link() -> None:
    net = even(2)
    wire = Wire(net, Placement(("h1", "h2"), ("h1",)), "ps")
    push, _ = wire.of_bucket(1e6)
    assert [(d.src, d.dst) for d in push.demand] == [("h2", "h1")]
    assert push.seconds == pytest.approx(1.0)


def test_two_workers_of_a_host_share_its_link_and_pass_each_other_without() -> None:
    net = even(2)
    wire = Wire(net, network.place(net, 4, "ring"), "ring")
    assert wire.placement.workers == ("h1", "h2", "h1", "h2")
    (transfer,) = wire.of_bucket(2e6)
    assert transfer.seconds == pytest.approx(6.0)  # two of the ring's four hops in each direction of each link


def test_lone_worker_asks_nobody() -> None:
    net = even(1)
    wire = Wire(net, network.place(net, 1, "ring"), "ring", HOST)
    assert wire.of_bucket(1e6) == []
    assert wire.of_buffers([100]) == []


def test_host_that_is_slower_than_its_link_sets_the_pace() -> None:
    net = even(2, rate=1e15)
    slow = Collective(message=0.0, byte=1e-6, processor_byte=2e-6, low=1.0, high=1.0)
    (transfer,) = Wire(net, network.place(net, 2, "ring"), "ring", slow).of_bucket(1e6)
    assert transfer.seconds == pytest.approx(1.0, rel=1e-3)
    assert transfer.work == pytest.approx(2.0)


def test_buffers_go_down_a_tree() -> None:
    net = even(4, latency=0.5)
    (transfer,) = Wire(net, network.place(net, 4, "ring"), "ring").of_buffers([1_000_000])
    assert {(d.src, d.dst) for d in transfer.demand} == {("h1", "h2"), ("h1", "h3"), ("h2", "h4")}
    assert transfer.seconds == pytest.approx(2 * 0.5 + 2.0)


def test_other_jobs_leave_the_rest_but_never_less_than_a_fair_share() -> None:
    busy = (Load(src="h1", dst="h2", bps=4e6 / GOODPUT),)
    net = even(2).model_copy(update={"loads": busy})
    left = network.left_bps(net)
    assert network.seconds(left, [DemandSpec(src="h1", dst="h2", bytes=1e6)]) == pytest.approx(2.0)
    assert network.seconds(left, [DemandSpec(src="h2", dst="h1", bytes=1e6)]) == pytest.approx(1.0)
    flood = (Load(src="h1", dst="h2", bps=9e15 / 10, flows=3),)
    net = even(2).model_copy(update={"loads": flood})
    left = network.left_bps(net)
    assert network.seconds(left, [DemandSpec(src="h1", dst="h2", bytes=1e6)]) == pytest.approx(4.0)


def link(seconds: float, work: float = 0.0, name: str = "a") -> Transfer:
    return Transfer(seconds, work, (), frozenset({(name, True)}))


def test_transfers_hide_behind_the_backward_pass() -> None:
    plan = Plan(
        (), (Step("forward", 2.0), Step("backward", 1.0, 0), Step("backward", 4.0, 1)), ((link(3.0),), (link(1.5),)),
        (Step("optimizer", 0.5),),
    )  # fmt: skip
    played = play(plan)
    assert played.seconds == pytest.approx(2 + 1 + 4 + 1.5 + 0.5)
    assert played.compute == pytest.approx(7.5)
    assert played.exposed == pytest.approx(1.5)
    assert played.overlapped == pytest.approx(3.0)
    assert [played.spans[n].name for n in played.critical] == [
        "forward",
        "backward",
        "backward",
        "bucket 2",
        "optimizer",
    ]


def test_link_that_is_held_is_waited_for_and_is_on_the_critical_path() -> None:
    plan = Plan((), (Step("backward", 1.0, 0), Step("backward", 1.0, 1)), ((link(5.0),), (link(2.0),)), ())
    played = play(plan)
    assert played.seconds == pytest.approx(8.0)
    assert [played.spans[n].name for n in played.critical] == ["backward", "bucket 1", "bucket 2"]


def test_other_links_are_used_at_once() -> None:
    plan = Plan((), (Step("backward", 1.0, 0), Step("backward", 1.0, 1)), ((link(5.0),), (link(2.0, name="b"),)), ())
    assert play(plan).seconds == pytest.approx(6.0)


def test_buckets_go_in_order_however_they_become_whole() -> None:
    plan = Plan((), (Step("backward", 1.0, 1), Step("backward", 1.0, 0)), ((link(1.0),), (link(1.0),)), ())
    played = play(plan)
    assert [(s.name, s.start) for s in played.spans if s.kind == "communicate"] == [
        ("bucket 1", 2.0),
        ("bucket 2", 3.0),
    ]


def test_push_then_pull_overlap_between_buckets() -> None:
    pair = (link(2.0, name="up"), link(2.0, name="down"))
    plan = Plan((), (Step("backward", 1.0, 0), Step("backward", 1.0, 1)), (pair, pair), ())
    assert play(plan).seconds == pytest.approx(1 + 2 + 2 + 2)


def test_wire_takes_from_a_full_machine_what_it_works() -> None:
    steps = (Step("backward", 1.0, 0), Step("backward", 3.0))
    full = Plan((), steps, ((link(4.0, work=2.0),),), (), crowded=True)
    # While the wire is used, half of a second's work for each second: the device has two thirds of its speed.
    assert play(full).seconds == pytest.approx(1 + 4 + (3 - 4 / 1.5))
    assert play(Plan((), steps, ((link(4.0, work=2.0),),), ())).seconds == pytest.approx(5.0)


def test_nothing_to_do_takes_no_time() -> None:
    played = play(Plan((), (), (), ()))
    assert (played.seconds, played.spans, played.critical) == (0.0, (), ())


PIECES = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=8)


@given(PIECES, st.booleans())
def test_iteration_is_no_shorter_than_either_and_no_longer_than_both(pieces, crowded: bool) -> None:
    steps = tuple(Step("backward", work, n) for n, (work, _) in enumerate(pieces))
    transfers = tuple((link(talk, work=talk / 4),) for _, talk in pieces)
    played = play(Plan((), steps, transfers, (), crowded=crowded))
    work, talk = (sum(column) for column in zip(*pieces, strict=True))
    slow = 1.25 if crowded else 1.0
    assert max(work, talk) <= played.seconds * (1 + 1e-9) + 1e-9
    assert played.seconds <= slow * work + talk + 1e-9
    assert played.compute + played.exposed == pytest.approx(played.seconds)
    path = [played.spans[n] for n in played.critical]
    assert sum(s.end - s.start for s in path) == pytest.approx(played.seconds, abs=1e-6)


@given(PIECES, st.floats(1, 3))
def test_slower_wire_is_never_sooner(pieces, factor: float) -> None:
    def seconds(slow: float) -> float:
        steps = tuple(Step("backward", work, n) for n, (work, _) in enumerate(pieces))
        return play(Plan((), steps, tuple((link(talk * slow),) for _, talk in pieces), ())).seconds

    assert seconds(factor) >= seconds(1.0) - 1e-9


def test_union() -> None:
    assert union([(3, 4), (0, 2), (1, 2.5)]) == pytest.approx(3.5)
    assert union([]) == 0.0


def test_prediction_by_hand() -> None:
    known = calibration({key(): 0.1}, wrapping=Wrapping(parameter=0.01, byte=0.0))
    found = predict(graph(2_000_000, 1_000_000), known, {}, Configuration(2, "ring", even(2)))
    # Each gradient closes a bucket or ends the backward pass; a ring of two sends each bucket's bytes once a link.
    assert found.seconds == pytest.approx(0.1 + 0.11 + max(0.11 + 0.0, 2.0) + 1.0 + 0.1)
    assert found.played.compute == pytest.approx(0.42)
    assert found.bytes == 6e6
    assert found.ways["table"] == pytest.approx(0.4)
    alone = predict(graph(2_000_000), known, {}, Configuration(1, "ring", even(1)))
    assert alone.seconds == pytest.approx(0.3)
    assert (alone.bytes, alone.played.exposed) == (0.0, 0.0)


def test_interval_holds_the_prediction_and_grows_with_the_wires() -> None:
    sure = calibration(contexts=(context(low=0.9, high=1.1),), collective=HOST)
    unsure = sure.model_copy(update={"collective": HOST.model_copy(update={"low": 0.5, "high": 2.0})})
    widths = []
    for known in (sure, unsure):
        found = predict(graph(2_000_000), known, {}, Configuration(2, "ring", even(2)))
        assert found.low <= found.seconds <= found.high
        widths.append(found.high - found.low)
    assert widths[1] > widths[0]


def test_more_workers_than_cores_take_longer_and_it_is_said() -> None:
    known = calibration(contexts=(context(), context(neighbours=1, near=1.5)), cores=2)
    hosts = tuple(h.model_copy(update={"machine": "m", "cores": 2}) for h in even(4, rate=1e15).hosts)
    shared = even(4).model_copy(update={"hosts": hosts})
    two, four = (predict(graph(8), known, {}, Configuration(n, "ring", shared)) for n in (2, 4))
    assert two.compute[0] == pytest.approx(0.3 * 1.5)
    assert four.compute[0] == pytest.approx(0.3 * 1.5 * 2)
    assert four.stretch == 2.0
    assert any("more workers than cores" in note for note in four.notes)
    assert not any("more workers" in note for note in two.notes)
    apart = predict(graph(8), known, {}, Configuration(4, "ring", even(4)))
    assert apart.compute[0] == pytest.approx(0.3)


def test_accelerators_are_not_shared() -> None:
    known = calibration(contexts=(context(), context(neighbours=1, near=1.5)), kind="cuda")
    found = predict(graph(8), known, {}, Configuration(4, "ring", even(1)))
    assert found.stretch == 1.0


def test_parameter_without_gradient_is_left_out_and_said() -> None:
    one = graph(MB)
    more = Graph(one.operators, (*one.parameters, Parameter("spare", MB, "float32", None)), (), 4, "float32")
    found = predict(more, calibration(), {}, Configuration(2, "ring", even(2)))
    assert found.bytes == 2 * MB
    assert any("spare" in note for note in found.notes)


def test_registration_is_what_the_controller_takes() -> None:
    for architecture, roles in (("ring", ["peer", "peer"]), ("ps", ["worker", "worker", "ps"])):
        found = predict(graph(MB), calibration(), {}, Configuration(2, architecture, even(3)))
        spec = found.registration("models:make\n", 500)
        again = JobSpec.model_validate_json(spec.model_dump_json())
        assert [task.role.value for task in again.tasks] == roles
        assert sum(part.bytes for part in again.demand) == found.bytes > 0
        assert (again.iterations, again.model) == (500, "models:make?")
        assert again.compute_seconds == pytest.approx(found.played.compute)


def test_document_is_json_and_names_what_was_never_measured() -> None:
    known = calibration({key(size=1): 1.0}, rooflines=(roofline(once=0.1),))
    found = predict(graph(2 * MB, MB), known, {}, Configuration(2, "ring", even(2)))
    made = PredictionReport("m:f", 4, "fp32", 8e6, found, found.registration("m:f"))
    told = json.loads(json.dumps(document.document([made], {"command": "x"}), allow_nan=False))
    (one,) = told["predictions"]
    assert one["unseen_operators"] == [
        {"operator": "aten.mm float32[8,8] float32[8,8]", "seconds": pytest.approx(0.4), "known_by": "roofline"}
    ]
    assert one["iteration_seconds"] == pytest.approx(found.seconds)
    assert sum(part["seconds"] for part in one["critical_path"]) == pytest.approx(found.seconds)
    assert one["cost_shares"]["roofline"] == 1.0
    assert [part["bytes"] for part in one["buckets"]] == [2 * MB, MB]
    lines = dict(document.facts(made))
    assert "predicted by family" in lines["never measured"]
    titles, rows = document.rows([made, made])
    assert [len(row) for row in rows] == [len(titles)] * 2


def test_network_file(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(
        "hosts:\n  - {name: a, ingress_bps: 1.0e+9, egress_bps: 2.0e+9}\n  - {name: b, machine: m, cores: 2}\n"
        "latency_seconds: 0.001\nloads:\n  - {src: a, dst: b, bps: 1000000}\nworkers: [b, a]\nps: [a]\n"
    )
    found = network.read(path)
    assert network.place(found, 3, "ps") == Placement(("b", "a", "b"), ("a",))
    assert [(host.machine, host.cores) for host in found.hosts] == [(None, None), ("m", 2)]
    assert {host.egress_bps for host in network.at_rate(found, 5e6).hosts} == {5e6}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hosts: []\n", ":1: hosts: "),
        ("hosts:\n  - {name: a}\n  - {name: a}\n", ":1: two hosts have the same name"),
        ("hosts:\n  - {name: a}\nworkers: [b]\n", ":1: b is none of the hosts; there are a"),
        ("hosts:\n  - {name: a}\n  - {name: b, egress_bps: -1}\n", ":3: hosts[1].egress_bps: "),
        ("hosts:\n  - {name: a}\nspeed: 7\n", ":3: speed: "),
        ("hosts: [\n", ":"),
        ("- a\n", ":1: it must be keys"),
        ("", ":1: is empty; it must hold a network: hosts"),
    ],
)
def test_wrong_network_file(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        network.read(path)
    assert str(refused.value).startswith(f"{path}{told}")
    assert "\n" not in str(refused.value)


def test_network_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        network.read(tmp_path / "none.yaml")
    (tmp_path / "x.yaml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="no UTF-8"):
        network.read(tmp_path / "x.yaml")


def test_job_of_more_processes_than_one_can_have_is_refused_before_it_is_played() -> None:
    for servers, hosts_of_workers, workers, said in (
        (2, 10, 4095, "4095 workers and 2 parameter servers: a job has at most 4096 processes"),
        (
            200,
            300,
            300,
            "workers on 300 hosts and parameter servers on 200 send between 120000 pairs of hosts: a job has",
        ),
    ):
        hosts = tuple(HostSpec(name=f"h{n}") for n in range(servers + hosts_of_workers))
        names = [host.name for host in hosts]
        net = NetworkSpec(hosts=hosts, workers=tuple(names[servers:]), ps=tuple(names[:servers]))
        with pytest.raises(InputError, match=said):
            predict(graph(MB), calibration(), {}, Configuration(workers, "ps", net))


def test_prediction_that_no_registration_can_hold_is_told_in_one_line() -> None:
    found = predict(graph(MB), calibration({key(): 1e12}), {}, Configuration(2, "ring", even(2)))
    with pytest.raises(InputError, match="no job can be registered with this prediction: compute_seconds: ") as told:
        found.registration("m:f")
    assert "\n" not in str(told.value)
