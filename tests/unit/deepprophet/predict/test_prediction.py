"""Predictions worked out by hand, and what is told of them."""

from __future__ import annotations

import json

import pytest

from controller.wire import JobSpec
from deepprophet.costs.calibration import Wrapping
from deepprophet.errors import InputError
from deepprophet.graph.graph import Graph, Parameter
from deepprophet.predict import document
from deepprophet.predict.document import PredictionReport
from deepprophet.predict.network import HostSpec, NetworkSpec
from deepprophet.predict.prediction import Configuration, predict
from tests.support.prophet_links import HOST, even
from tests.support.prophet_world import MB, calibration, context, graph, key, roofline


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
        assert again.predicted is not None
        assert (again.predicted.low, again.predicted.seconds) == pytest.approx((found.low, found.seconds))


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
