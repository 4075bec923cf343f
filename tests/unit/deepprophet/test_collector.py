"""Python's collector rests where libraries are loaded and models are traced, and goes on afterwards."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator

import pytest

from deepprophet.collector import MANY_MODULES, paused


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_it_goes_on_as_before() -> None:
    with paused():
        assert not gc.isenabled()
        with paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="wrong"), paused():
        raise ValueError("wrong")
    assert gc.isenabled()


@pytest.mark.parametrize("count", [1, MANY_MODULES])
def test_what_a_library_has_made_is_not_looked_at_again(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.unfreeze()
    with paused():
        for number in range(count):
            monkeypatch.setitem(sys.modules, f"library.part_{number}", types.ModuleType("part"))
    assert (gc.get_freeze_count() > 0) == (count == MANY_MODULES)
