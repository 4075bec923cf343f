"""Which parts of a batch a model's ``forward`` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deepprophet.errors import InputError
from deepprophet.graph.arguments import EVERYTHING, selection


def one(x: Any) -> None: ...
def masked(x: Any, mask: Any = None) -> None: ...
def two(x: Any, y: Any) -> None: ...
def all_of(*batch: Any) -> None: ...
def named(x: Any, *, scale: float = 1.0) -> None: ...
def open_to_names(x: Any, **more: Any) -> None: ...


@pytest.mark.parametrize(
    ("forward", "given", "count"),
    [
        (one, 2, 1), (one, 3, 1), (one, 1, 1), (masked, 2, 1), (masked, 3, 2), (two, 2, 2), (two, 3, 2),
        (all_of, 2, None), (named, 2, 1), (open_to_names, 2, 1),
    ],
)  # fmt: skip
def test_with_a_loss_the_last_part_is_the_labels(forward: Callable[..., Any], given: int, count: int | None) -> None:
    """Unless the model needs it."""
    assert selection(forward, (0,) * given, has_loss=True).count == count
    assert selection(forward, [0] * given, has_loss=True).count == count


def test_without_a_loss_the_model_gets_all() -> None:
    assert selection(masked, (0, 0), has_loss=False) == EVERYTHING
    assert selection(all_of, (0,) * 9, has_loss=False) == EVERYTHING
    with pytest.raises(InputError, match=r"the batch has 2 parts, and the model's forward takes x: return a loss too"):
        selection(one, (0, 0), has_loss=False)


def test_names_that_the_model_does_not_take_are_the_losses() -> None:
    batch = {"x": 0, "scale": 2.0, "labels": 1}
    assert selection(named, batch, has_loss=True).names == {"x", "scale"}
    assert selection(open_to_names, batch, has_loss=False) == EVERYTHING
    with pytest.raises(InputError, match=r"the batch has labels, which .* does not take; it takes scale, x: rename it"):
        selection(named, batch, has_loss=False)


def test_one_tensor_is_one_argument() -> None:
    assert selection(one, 0, has_loss=True) == EVERYTHING
