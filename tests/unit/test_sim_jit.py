"""What is compiled is kept by what all of its sources say."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from simulator import jit
from simulator.kernel import together


def test_what_is_kept_is_of_these_sources_and_no_others(tmp_path):
    first, second = tmp_path / "kernel.py", tmp_path / "rates.py"
    first.write_text("a = 1\n")
    second.write_text("b = 2\n")
    before = jit.digest([first, second])
    assert jit.digest([second, first]) == before
    second.write_text("b = 3\n")
    assert jit.digest([first, second]) != before


def test_an_entry_is_kept_on_disk_and_the_compilers_own_settings_stay():
    before = vars(numba.config)["CACHE_DIR"]
    together(1.0)
    assert list(jit.kept().rglob("kernel.together-*.nbc"))
    assert before == vars(numba.config)["CACHE_DIR"]


def test_what_is_compiled_can_allocate_nothing_so_it_counts_no_references():
    def allocates(n: int) -> float:
        return float(np.zeros(n).sum())

    assert numba.njit(allocates)(3) == 0.0
    with pytest.raises(numba.core.errors.TypingError):
        jit.entry(allocates)(3)
