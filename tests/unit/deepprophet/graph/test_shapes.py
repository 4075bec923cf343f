"""What a shape costs beyond its operations and bytes, on calls whose numbers can be worked out by hand."""

from __future__ import annotations

import math

import pytest

from deepprophet.costs.fit import fit
from deepprophet.graph import families, shapes
from deepprophet.graph.spec import Call, TensorSpec


def tensor(*shape: int, turned: bool = False) -> TensorSpec:
    strides = tuple(math.prod(shape[:place]) for place in range(len(shape))) if turned else None
    return TensorSpec("float32", shape, strides)


def product(rows: int, inner: int, columns: int, *, turned: bool = False) -> Call:
    return Call("aten.mm.default", (tensor(rows, inner), tensor(inner, columns, turned=turned)), {})


def convolution(count: int, few: int, side: int, many: int, kernel: int, stride: int, *, back: bool = False) -> Call:
    given, weight, steps = tensor(count, few, side, side), tensor(many, few, kernel, kernel), [stride, stride]
    rest = ([0, 0], [1, 1], False, [0, 0], 1)
    if back:
        result = tensor(count, many, side // stride, side // stride)
        return Call(
            "aten.convolution_backward.default", (result, given, weight, [many], steps, *rest, [True, True, False]), {}
        )
    return Call("aten.convolution.default", (given, weight, None, steps, *rest), {})


def test_a_product_pays_for_short_dimensions_and_for_those_laid_out_the_other_way() -> None:
    flops = 2.0 * 10 * 30 * 20
    assert shapes.terms(product(10, 30, 20), flops) == (flops / 10, flops / 30, flops / 20, 1.0, 0.0, 0.0)
    assert shapes.terms(product(10, 30, 20, turned=True), flops)[-2:] == (0.0, 30 * 20 * 4.0)
    # The term before the factors is none of them; a batch of products is one a matrix.
    added = Call("aten.addmm.default", (tensor(20), tensor(10, 30), tensor(30, 20)), {})
    assert shapes.terms(added, flops) == shapes.terms(product(10, 30, 20), flops)
    many = Call("aten.bmm.default", (tensor(7, 10, 30), tensor(7, 30, 20)), {})
    assert shapes.terms(many, 7 * flops) == (*(7 * flops / size for size in (10, 30, 20)), 7.0, 0.0, 0.0)


@pytest.mark.parametrize("back", [False, True])
def test_a_convolution_pays_for_its_filters_and_its_windows(back: bool) -> None:
    places, window = 5 * 4 * 4, 6 * 3 * 3
    found = shapes.terms(convolution(5, 6, 8, 10, 3, 2, back=back), 1e6)
    assert found[:5] == (1e6 / places, 1e6 / window, 1e6 / 10, 10 * window * 4.0, 4.0 * places * window)
    # Of blocks of 16 channels 10 and 6 are empty; and it goes by two.
    assert found[5:] == (pytest.approx(1e6 * 10 / 6), pytest.approx(1e6 * 6 / 10), 1e6, 0.0, 0.0)
    assert shapes.terms(convolution(5, 32, 8, 48, 3, 1, back=back), 1e6)[5:] == (0.0,) * 5


def test_windows_with_gaps_and_of_one_dimension_are_told_apart() -> None:
    given, weight = tensor(5, 32, 40), tensor(48, 32, 3)
    for dilation, terms in ((1, (0.0, 1e6)), (4, (1e6, 1e6))):
        call = Call("aten.convolution.default", (given, weight, None, [1], [0], [dilation], False, [0], 1), {})
        assert shapes.terms(call, 1e6)[-2:] == terms


def test_products_in_groups_pay_for_each_group() -> None:
    flops = 2.0 * 64 * 32 * 48
    call = Call("aten._grouped_mm.default", (tensor(64, 32), tensor(4, 32, 48), tensor(4)), {})
    assert shapes.terms(call, flops) == (flops / 64, flops / 32, flops / 48, 4.0, 0.0, 0.0)
    back = Call("aten._grouped_mm.default", (tensor(32, 64), tensor(64, 48)), {"offs": tensor(4)})
    assert shapes.terms(back, flops)[3] == 4.0


def test_calls_of_a_family_have_equally_many_terms() -> None:
    odd = Call("aten.mm.default", (tensor(),), {})
    assert len(shapes.terms(odd, 1.0)) == len(shapes.terms(product(1, 2, 3), 1.0))
    for name in ("aten.sum.dim_IntList", "aten._softmax.default", "aten.embedding.default", "aten.add.Tensor"):
        counts = {
            len(shapes.terms(Call(name, given, {}), 1.0)) for given in ((), (tensor(),), (tensor(3, 4), tensor(4)))
        }
        assert len(counts) == 1, name


def test_a_roofline_learns_from_some_shapes_what_others_take() -> None:
    """A device that multiplies in tiles: of few rows or columns a part of each tile is for nothing."""

    def seconds(rows: int, inner: int, columns: int) -> float:
        flops = 2.0 * rows * inner * columns
        return 4e-6 + 1e-11 * flops + 3e-10 * flops / rows + 1e-10 * flops / columns

    def row(*sizes: int) -> tuple[float, ...]:
        call = product(*sizes)
        flops = families.flops(call, [tensor(sizes[0], sizes[2])])
        return 1.0, flops, families.moved(call, [tensor(sizes[0], sizes[2])]), *shapes.terms(call, flops)

    seen = [(a, b, c) for a in (3, 20, 150, 900) for b in (12, 90, 700) for c in (5, 60, 800)]
    found = fit([row(*sizes) for sizes in seen], [seconds(*sizes) for sizes in seen])
    for sizes in ((8, 300, 300), (64, 1024, 10), (500, 20, 500)):
        told = sum(factor * value for factor, value in zip(found.factors, row(*sizes), strict=True))
        assert told == pytest.approx(seconds(*sizes), rel=0.05)
    plain = fit([row(*sizes)[:3] for sizes in seen], [seconds(*sizes) for sizes in seen])
    assert found.high - found.low < 0.2 * (plain.high - plain.low)
