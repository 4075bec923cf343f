"""DeepProphet's small parts: calls as keys, kinds and amounts of work, reuse, fits, buckets, the calibration file."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepprophet.costs import store
from deepprophet.costs.calibration import from_text
from deepprophet.costs.fit import fit, quantile
from deepprophet.costs.measured import Measurement
from deepprophet.errors import InputError, UncalibratedError
from deepprophet.graph import families
from deepprophet.graph.graph import Graph, Parameter
from deepprophet.graph.memory.reuse import FAR_BYTES, NEAR_BYTES, Reuse, farness
from deepprophet.graph.spec import Call, TensorSpec, Word, parse, readable
from deepprophet.predict.buckets import buckets
from tests.support.prophet_world import MB, calibration, graph, key


def tensor(*shape: int, dtype: str = "float32", strides: tuple[int, ...] | None = None) -> TensorSpec:
    return TensorSpec(dtype, shape, strides)


ARGUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=4)
    | st.builds(TensorSpec, st.sampled_from(["float32", "int64"]), st.tuples(st.integers(0, 9), st.integers(0, 9)))
    | st.builds(Word, st.just("dtype"), st.sampled_from(["float32", "bfloat16"])),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.lists(ARGUMENTS, max_size=5), st.dictionaries(st.sampled_from(["alpha", "dtype"]), ARGUMENTS))
def test_key_says_the_whole_call(arguments, options) -> None:
    call = Call("aten.add.Tensor", tuple(arguments), options)
    again = parse(call.key())
    assert again == call
    assert again.key() == call.key()


@pytest.mark.parametrize(
    "text", ["[]", "{}", "1", '["a"]', '["a", [{"t": 1}], {}]', '["a", [{"x": 1}], {}]', "nonsense"]
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_call_for_people() -> None:
    assert readable(parse(key(size=3))) == "aten.mm float32[3,3] float32[3,3]"


def test_expanded_tensor_is_stored_once() -> None:
    assert tensor(64, 10, strides=(0, 1)).bytes == 40
    assert tensor(64, 10).bytes == 2560
    assert tensor(2, 3, dtype="int64").bytes == 48


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten.mm.default", "matmul"),
        ("aten.addmm.default", "matmul"),
        ("aten._scaled_dot_product_flash_attention_for_cpu_backward.default", "attention"),
        ("aten.mkldnn_rnn_layer_backward.default", "recurrent"),
        ("aten.native_batch_norm_backward.default", "normalise-grad"),
        ("aten.native_layer_norm.default", "normalise"),
        ("aten.max_pool2d_with_indices_backward.default", "pool-grad"),
        ("aten.bernoulli_.float", "random"),
        ("aten.empty_like.default", "view"),
        ("aten.gelu_backward.default", "function"),
        ("aten.nll_loss_forward.default", "loss"),
        ("aten._unsafe_index.Tensor", "lookup"),
        ("aten.max_pool2d_with_indices.default", "pool"),
        ("aten._log_softmax_backward_data.default", "softmax"),
        ("aten._embedding_bag_dense_backward.default", "lookup-grad"),
        ("aten._unsafe_view.default", "view"),
        ("aten.add_.Tensor", "elementwise"),
        ("aten._foreach_add_.List", "elementwise"),
        ("aten.cat.default", "copy"),
        ("aten.histc.default", "reduce"),
        ("aten.upsample_bilinear2d_backward.default", "resample-grad"),
        ("aten.upsample_bilinear2d.default", "resample"),
        ("aten._fft_r2c.default", "transform"),
        ("aten.hardsigmoid.default", "elementwise"),
        ("aten._weight_norm_interface.default", "function"),
        ("aten.im2col.default", "copy"),
        ("mine.special.default", "other"),
    ],
)
def test_families(name: str, family: str) -> None:
    assert families.family(Call(name, (tensor(4, 4), tensor(4, 4), tensor(4, 4)), {})) == family


def convolution(kernel: int, groups: int = 1) -> Call:
    weight = tensor(16, 8 // groups, kernel, kernel)
    rest = [None, [1, 1], [0, 0], [1, 1], False, [0, 0], groups]
    return Call("aten.convolution.default", (tensor(2, 8, 10, 10), weight, *rest), {})


def test_convolutions_by_filter() -> None:
    assert families.family(convolution(1)) == "conv-point"
    assert families.family(convolution(3)) == "conv-spatial"
    assert families.family(convolution(3, 4)) == "conv-grouped"
    assert families.family(convolution(3, 8)) == "conv-depthwise"


def test_work_of_a_convolution_and_of_its_backward() -> None:
    out = tensor(2, 16, 8, 8)
    once = 2 * 3 * 3 * 8 * out.elements
    assert families.flops(convolution(3), [out]) == once
    arguments = (out, tensor(2, 8, 10, 10), tensor(16, 8, 3, 3), [16], [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    for wanted, ways in (([True, True, True], 2), ([False, True, True], 1)):
        back = Call("aten.convolution_backward.default", (*arguments, wanted), {})
        assert families.family(back) == "conv-grad-spatial"
        assert families.flops(back, []) == ways * once


def test_work_of_a_convolution_that_spreads_its_input() -> None:
    given, weight, out = tensor(2, 8, 10, 10), tensor(8, 16, 2, 2), tensor(2, 16, 20, 20)
    rest = ([2, 2], [0, 0], [1, 1], True, [0, 0], 1)
    once = 2 * 2 * 2 * 16 * given.elements
    assert families.flops(Call("aten.convolution.default", (given, weight, None, *rest), {}), [out]) == once
    back = Call("aten.convolution_backward.default", (out, given, weight, [16], *rest, [True, True, False]), {})
    assert families.flops(back, []) == 2 * once


def test_work_of_products_in_groups_is_that_of_their_rows() -> None:
    rows, experts, offsets = tensor(64, 32), tensor(4, 32, 48), tensor(4, dtype="int32")
    forward = Call("aten._grouped_mm.default", (rows, experts, offsets), {})
    assert families.family(forward) == "grouped-matmul"
    assert families.flops(forward, [tensor(64, 48)]) == 2 * 64 * 32 * 48
    # The gradient of the experts adds up over the rows of each.
    weights = Call("aten._grouped_mm.default", (tensor(32, 64), tensor(64, 48), offsets), {})
    assert families.flops(weights, [experts]) == 2 * 64 * 32 * 48


def test_work_of_products() -> None:
    mm = Call("aten.mm.default", (tensor(3, 5), tensor(5, 7)), {})
    assert families.flops(mm, [tensor(3, 7)]) == 2 * 3 * 5 * 7
    addmm = Call("aten.addmm.default", (tensor(7), tensor(3, 5), tensor(5, 7)), {})
    assert families.flops(addmm, [tensor(3, 7)]) == 2 * 3 * 5 * 7
    bmm = Call("aten.bmm.default", (tensor(4, 3, 5), tensor(4, 5, 7)), {})
    assert families.flops(bmm, [tensor(4, 3, 7)]) == 4 * 2 * 3 * 5 * 7
    assert families.moved(mm, [tensor(3, 7)]) == 4 * (15 + 35 + 21)


def test_look_up_reads_rows_not_its_table() -> None:
    call = Call("aten.embedding.default", (tensor(100_000, 64), tensor(8, dtype="int64")), {})
    assert families.moved(call, [tensor(8, 64)]) == 2 * 8 * 64 * 4 + 8 * 8


def test_views_move_nothing() -> None:
    call = Call("aten.t.default", (tensor(1000, 1000),), {})
    assert families.moved(call, [tensor(1000, 1000)]) == 0
    assert families.flops(call, [tensor(1000, 1000)]) == 0


def test_what_was_just_written_is_near_and_old_weights_are_far() -> None:
    reuse = Reuse()
    reuse.note([1], [1000], [2], 1000.0)  # a weight, used once an iteration
    reuse.note([2], [1000], [3], 1000.0)  # what was just made
    reuse.note([3, 2], [1000, 1000], [4], 2.0 * FAR_BYTES)
    reuse.note([2, 4], [500, 500], [5], 1000.0)
    first, second, third, fourth = reuse.far_shares()
    assert first == 1.0
    assert second == third == 0.0
    assert fourth == 0.0  # both were touched by the operator before
    assert farness(NEAR_BYTES) == 0.0
    assert farness(math.sqrt(NEAR_BYTES * FAR_BYTES)) == pytest.approx(0.5)
    assert farness(FAR_BYTES) == 1.0


def test_operator_without_inputs_reads_nothing_from_afar() -> None:
    reuse = Reuse()
    reuse.note([], [], [1], 10.0)
    assert reuse.far_shares() == [0.0]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=2), st.integers(0, 99))
def test_fit_finds_what_was_put_in(factors: list[float], seed: int) -> None:
    chance = random.Random(seed)
    rows = [(chance.uniform(1, 10), chance.uniform(1, 10)) for _ in range(25)]
    found = fit(rows, [factors[0] * a + factors[1] * b for a, b in rows])
    for (a, b), wanted in zip(rows, [factors[0] * a + factors[1] * b for a, b in rows], strict=True):
        assert found.factors[0] * a + found.factors[1] * b == pytest.approx(wanted, rel=0.02)
    assert 0.97 < found.low <= found.high < 1.03


def test_fit_has_no_negative_factors_and_outlasts_outliers() -> None:
    rows = [(float(n), 1.0) for n in range(1, 31)]
    seconds = [2.0 * n for n in range(1, 31)]
    seconds[4] *= 20
    seconds[20] *= 0.1
    found = fit(rows, seconds)
    assert found.factors[0] == pytest.approx(2.0, rel=0.03)
    assert min(found.factors) >= 0.0


def test_fit_off_by_twice_weighs_as_much_either_way() -> None:
    found = fit([(1.0,)] * 40, [1.0] * 20 + [4.0] * 20)
    assert 1.0 <= found.factors[0] <= 4.0
    assert found.low * found.factors[0] == pytest.approx(1.0, rel=0.01)
    assert found.high * found.factors[0] == pytest.approx(4.0, rel=0.01)


def test_fit_keeps_to_its_prior_where_nothing_is_known() -> None:
    found = fit([(1.0, 0.0)] * 8, [3.0] * 8, priors=(1.0, 0.5), trust=0.01)
    assert found.factors[0] == pytest.approx(3.0, rel=0.03)
    assert found.factors[1] == 0.5


def test_fit_of_nothing() -> None:
    with pytest.raises(ValueError):
        fit([], [])
    assert quantile([1.0, 3.0], 0.5) == 2.0


def test_first_bucket_is_small_and_closed_by_the_one_that_fills_it() -> None:
    found = buckets(graph(MB // 2, 3 * MB, 20 * MB, 4 * MB, 2 * MB, MB))
    assert [bucket.parameters for bucket in found] == [("p0", "p1"), ("p2", "p3", "p4"), ("p5",)]
    assert [bucket.bytes for bucket in found] == [3 * MB + MB // 2, 26 * MB, MB]
    assert [bucket.ready for bucket in found] == [2, 5, 6]


def test_buckets_go_by_the_order_of_gradients_and_by_type_of_number() -> None:
    parameters = (
        Parameter("last", 2 * MB, "float32", 9), Parameter("first", 2 * MB, "float32", 3),
        Parameter("half", 2 * MB, "bfloat16", 5), Parameter("unused", MB, "float32", None),
    )  # fmt: skip
    found = buckets(Graph((), parameters, (), 1, "float32"))
    assert [bucket.parameters for bucket in found] == [("first",), ("half",), ("last",)]


@given(st.lists(st.integers(1, 60 * MB), min_size=1, max_size=40))
def test_buckets_lose_no_gradient(sizes: list[int]) -> None:
    found = buckets(graph(*sizes))
    assert sorted(name for bucket in found for name in bucket.parameters) == sorted(f"p{n}" for n in range(len(sizes)))
    assert sum(bucket.bytes for bucket in found) == sum(sizes)
    assert [bucket.ready for bucket in found] == sorted(bucket.ready for bucket in found)


def test_calibration_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    kept = calibration({key(): 0.25})
    path = store.path_of({"XDG_CACHE_HOME": str(tmp_path)}, "Some CPU (R) @ 2 GHz", 4)
    assert path == tmp_path / "trainyard" / "prophet" / "some-cpu-r-2-ghz-4-threads.json"
    store.write(path, kept)
    assert store.read(path, "Some CPU", 4) == kept
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    more = kept.with_table({key(size=9): Measurement(1.0, 2.0, 0.5, 1.5)})
    assert more.measured(key(size=9)) == Measurement(1.0, 2.0, 0.5, 1.5)
    assert more.measured(key()) is not None
    assert kept.without_table().measured(key()) is None


def test_own_folder_for_calibrations(tmp_path: Path) -> None:
    assert store.folder({"TRAINYARD_PROPHET": str(tmp_path)}) == tmp_path


def test_uncalibrated_device_is_told_how(tmp_path: Path) -> None:
    with pytest.raises(
        UncalibratedError, match=r"trainyard predict --calibrate --threads 2 --device cuda on it"
    ) as told:
        store.read(tmp_path / "none.json", "a device", 2, " --device cuda")
    assert str(tmp_path / "none.json") in str(told.value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda text: text[: len(text) // 2], ""),
        (lambda text: text.replace('"threads":1', '"threads":0'), "provenance.threads"),
        (lambda text: text.replace('"near":1.0', '"near":-1.0'), "contexts.0.near"),
        (lambda text: text.replace('"kernel"', '"kern"'), "provenance.kernel"),
        (lambda text: text.replace('"format":5', '"format":7'), "format 7; this version reads 5"),
        (lambda text: text.replace('"format":5', '"format":2').replace('"fresh"', '"old"'), "format 2"),
        (lambda text: text.replace('"fresh"', '"old"'), "contexts.0.fresh"),
        (lambda _: "[]", ""),
        (lambda _: "", ""),
    ],
)
def test_broken_calibration_is_named(change, field: str) -> None:
    text = change(calibration().model_dump_json())
    with pytest.raises(InputError) as told:
        from_text(text, "here.json")
    assert str(told.value).startswith(f"here.json: {field}")
    assert "--calibrate" in str(told.value)
    assert "\n" not in str(told.value)


def test_unreadable_calibration(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"{\xff\xfe")
    with pytest.raises(InputError, match=r"no UTF-8 text; .*; calibrate again"):
        store.read(tmp_path / "x.json", "a device", 1)
    with pytest.raises(InputError, match="cannot be read"):
        store.read(tmp_path, "a device", 1)
