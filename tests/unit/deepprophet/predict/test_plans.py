"""Plans of training beyond a copy a worker, worked out by hand: an operator takes 0.1 s, a megabyte a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepprophet.errors import InputError
from deepprophet.graph.graph import Graph, Parameter, Reduction
from deepprophet.predict import mapping
from deepprophet.predict.mapping import MappingSpec
from deepprophet.predict.pipelined import turns
from deepprophet.predict.prediction import Configuration, Prediction, predict
from tests.support.prophet_links import even
from tests.support.prophet_world import calibration, operator

MEGA = 1_000_000


def layered(*, buffers: tuple[int, ...] = ()) -> Graph:
    """An embedding and two layers of one operator each, forward and back, and the optimiser."""
    names = ("words", "layers.0", "layers.1")
    forward = [operator(module=name, after=(n - 1,) if n else (), result_bytes=MEGA) for n, name in enumerate(names)]
    backward = [operator("backward", module=name) for name in reversed(names)]
    return Graph(
        operators=(*forward, *backward, operator("optimizer")),
        parameters=tuple(Parameter(f"{name}.weight", 2 * MEGA, "float32", 5 - n) for n, name in enumerate(names)),
        buffer_bytes=buffers,
        batch_size=4,
        dtype="float32",
    )


def predicted(graph: Graph, workers: int, **spec: object) -> Prediction:
    asked = Configuration(workers, "ring", even(max(workers, 1)), MappingSpec.model_validate(spec))
    return predict(graph, calibration(), {}, asked)


def starts(found: Prediction) -> list[tuple[str, float]]:
    spans = sorted(found.played.spans, key=lambda span: (round(span.start, 6), span.name))
    return [(span.name, round(span.start, 6)) for span in spans]


def test_several_batches_are_exchanged_once() -> None:
    one = layered()
    passes = one.operators[:-1]
    several = Graph(
        (*passes, *passes, one.operators[-1]),
        tuple(Parameter(p.name, p.bytes, p.dtype, (p.ready or 0) + 6) for p in one.parameters), (), 4, "float32",
        later=6, micro_batches=5,
    )  # fmt: skip
    assert several.times() == [1] * 6 + [4] * 6 + [1]
    plain, added = predicted(one, 2), predicted(several, 2, accumulate=5)
    assert added.seconds == pytest.approx(plain.seconds + 4 * 0.6)
    assert added.bytes == plain.bytes
    assert added.compute[0] == pytest.approx(5 * 0.6 + 0.1)
    assert (plain.examples, added.examples) == (8, 40)
    assert sum(added.ways.values()) == pytest.approx(3.1)


def test_layers_that_are_cut_wait_for_what_their_ranks_add_up() -> None:
    one = layered()
    cut = Graph(
        one.operators, one.parameters, (), 4, "float32", reductions=(Reduction(1, 2 * MEGA), Reduction(4, MEGA))
    )  # fmt: skip
    tensor = {"ranks": 2, "columns": [], "rows": ["layers.*"]}
    alone = predicted(cut, 2, tensor=tensor)
    # Two ranks hold the model once: no gradient is exchanged, and each sum crosses each link once.
    assert alone.seconds == pytest.approx(0.7 + 2.0 + 1.0)
    assert alone.bytes == 2 * 3 * MEGA
    assert alone.examples == 4
    copies = predicted(cut, 4, tensor=tensor)
    assert copies.examples == 8
    assert copies.bytes == 4 * 3 * MEGA + 4 * 6 * MEGA
    with pytest.raises(InputError, match="--workers 3: the mapping needs 2 workers for the model once"):
        predicted(cut, 3, tensor=tensor)


def test_shards_are_gathered_before_they_compute_and_scattered_after() -> None:
    found = predicted(layered(), 2, fsdp={"units": ["layers.*"]})
    # Of two megabytes half cross each link to be gathered, and all to be added up. A processor waits for each exchange.
    assert starts(found) == [
        ("gather", 0.0), ("forward", 1.0), ("gather", 1.1), ("forward", 2.1), ("gather", 2.2), ("forward", 3.2),
        ("gather", 3.3), ("backward", 4.3), ("scatter", 4.4), ("gather", 6.4), ("backward", 7.4), ("scatter", 7.5),
        ("backward", 9.5), ("scatter", 9.6), ("optimizer", 11.6),
    ]  # fmt: skip
    assert found.seconds == pytest.approx(11.6 + 0.1 / 2)
    assert found.bytes == 2 * (5 + 2 * 3) * MEGA
    kept = predicted(layered(), 2, fsdp={"units": ["layers.*"], "reshard_after_forward": False})
    assert kept.bytes == 2 * (3 + 2 * 3) * MEGA
    alone = predicted(layered(), 1, fsdp={"units": ["layers.*"]})
    assert (alone.seconds, alone.bytes) == (pytest.approx(0.7), 0.0)


def test_an_accelerator_exchanges_while_it_computes() -> None:
    asked = Configuration(2, "ring", even(2), MappingSpec.model_validate({"fsdp": {"units": ["layers.*"]}}))
    found = predict(layered(), calibration(kind="cuda"), {}, asked)
    assert starts(found) == [
        ("gather", 0.0), ("forward", 1.0), ("gather", 1.0), ("forward", 2.0), ("gather", 2.0), ("forward", 3.0),
        ("gather", 3.1), ("backward", 4.1), ("gather", 4.1), ("backward", 5.1), ("scatter", 5.1), ("backward", 5.2),
        ("scatter", 6.1), ("scatter", 7.1), ("optimizer", 8.1),
    ]  # fmt: skip
    assert found.bytes == 2 * (5 + 3) * MEGA


STAGES = [["words", "layers.0"], ["layers.1"]]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_parts_of_a_batch_go_through_a_pipeline(schedule: str) -> None:
    small = [["words"], ["layers.0"], ["layers.1"]]
    pipeline = {"stages": small, "micro_batches": 4, "schedule": schedule}
    network = even(3, rate=1e15)
    asked = Configuration(3, "ring", network, MappingSpec.model_validate({"pipeline": pipeline}))
    found = predict(layered(), calibration(), {}, asked)
    # Stages of equal length are idle while the pipeline fills and while it runs dry: as long as all but one of them.
    assert found.seconds == pytest.approx((4 + 3 - 1) * 0.2 + 0.1 / 3, rel=1e-6)
    assert found.examples == 16
    assert {span.device for span in found.played.spans} == {0, 1, 2}
    # Each part crosses two boundaries there and back.
    assert found.bytes == 4 * 2 * 2 * MEGA


def test_stages_of_two_copies_exchange_their_own_gradients() -> None:
    found = predicted(layered(), 4, pipeline={"stages": STAGES, "micro_batches": 2})
    assert found.bytes == 2 * (2 * 2 * MEGA) + 2 * (4 + 2) * MEGA
    assert {span.name for span in found.played.spans} >= {"send 1 to 2", "send 2 to 1", "gradients 1", "gradients 2"}
    assert found.examples == 16


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([["layers.0"], ["layers.7"]], r"stage 2 \(layers.7\) computes nothing"),
        ([["layers.*"], ["words"]], "stage 1 computes again after stage 2: stages must be in the order"),
    ],
)
def test_stages_that_are_none(stages: list[list[str]], said: str) -> None:
    with pytest.raises(InputError, match=said):
        predicted(layered(), 2, pipeline={"stages": stages})


def test_one_forward_one_backward() -> None:
    order = turns("1f1b", 0, 3, 4)
    assert order == [
        ("forward", 0), ("forward", 1), ("forward", 2), ("backward", 0), ("forward", 3), ("backward", 1),
        ("backward", 2), ("backward", 3),
    ]  # fmt: skip
    assert turns("1f1b", 2, 3, 2) == [("forward", 0), ("backward", 0), ("forward", 1), ("backward", 1)]
    assert sorted(turns("1f1b", 0, 9, 2)) == sorted(turns("gpipe", 0, 9, 2))


def test_shards_and_stages_exchange_in_rings() -> None:
    spec = MappingSpec.model_validate({"fsdp": {"units": ["layers.*"]}})
    with pytest.raises(InputError, match="the mapping has fsdp, whose workers exchange in rings"):
        predict(layered(), calibration(), {}, Configuration(2, "ps", even(3), spec))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: is empty; it must hold a mapping: accumulate, checkpoint, fsdp, tensor, pipeline"),
        ("- a\n", ":1: it must be keys with values: accumulate, checkpoint, fsdp, tensor, pipeline"),
        ("accumulate: 0\n", ":1: accumulate: "),
        ("accumulate: 2\nfsdp: {units: []}\n", ":2: fsdp.units: "),
        ("pipeline:\n  stages: [[a]]\n", ":2: pipeline.stages: "),
        ("shards: 2\n", ":1: shards: "),
        (
            "fsdp: {units: [a]}\ntensor: {ranks: 2, columns: [a], rows: [b]}\n",
            "fsdp and tensor together are not predicted",
        ),
        ("accumulate: 2\npipeline: {stages: [[a], [b]]}\n", "a pipeline adds up its micro_batches"),
        ("accumulate: 2\nfsdp: {units: [a]}\n", "accumulate with fsdp is not predicted"),
    ],
)
def test_wrong_mapping_is_said_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as told:
        mapping.read(path)
    assert str(told.value).startswith(f"{path}")
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_mapping_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text(
        "checkpoint: [layers.*]\npipeline:\n  stages:\n    - [words, layers.0]\n    - [layers.1]\n  micro_batches: 4\n"
    )
    found = mapping.read(path)
    assert found.checkpoint == ("layers.*",)
    assert found.pipeline is not None
    assert (found.pipeline.stages, found.pipeline.schedule) == ((("words", "layers.0"), ("layers.1",)), "1f1b")
    assert (found.ranks_of_a_copy, found.copies(6)) == (2, 3)
