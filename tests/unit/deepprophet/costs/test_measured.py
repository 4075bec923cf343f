"""What a calibration measures is checked where it is made, and kept for the next; a busy device is noticed."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepprophet.costs.calibration_journal import SUFFIX, Journal, JournalContents
from deepprophet.costs.measured import ImplausibleError, Measurement, checked, summary
from deepprophet.device import busy
from deepprophet.errors import ProphetError

ABOUT: dict[str, object] = {"device": "a CPU", "threads": 1}


def test_quartiles_of_two_samples_lie_between_them() -> None:
    found = summary([1.0, 10.0], [], "mm")
    assert statistics.quantiles([1.0, 10.0], n=4)[0] < 0, "what it was: quartiles of a population, beyond the samples"
    assert (found.low, found.near, found.high, found.far) == (3.25, 5.5, 7.75, 5.5)


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=25), st.lists(st.floats(1e-9, 1e3), max_size=25))
def test_whatever_the_samples_a_summary_is_in_order(near: list[float], far: list[float]) -> None:
    found = summary(near, far, "mm")
    assert min(near) <= found.low <= found.near <= found.high <= max(near)
    assert found.far >= found.near


@pytest.mark.parametrize(
    "wrong",
    [
        Measurement(1.0, 1.0, -0.5, 2.0),
        Measurement(0.0, 1.0, 0.0, 2.0),
        Measurement(1.0, math.inf, 1.0, 2.0),
        Measurement(math.nan, 1.0, 1.0, 2.0),
        Measurement(1.0, 0.5, 1.0, 2.0),
        Measurement(1.0, 1.0, 1.5, 2.0),
        Measurement(1.0, 1.0, 0.5, 0.9),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_made(wrong: Measurement, tmp_path: Path) -> None:
    with pytest.raises(ImplausibleError, match=r"^mm took "):
        checked(wrong, "mm")
    with closing(Journal(tmp_path / "x.json", ABOUT)) as journal:
        with pytest.raises(ImplausibleError):
            journal.add(operator="k", seconds=[wrong.near, wrong.far, wrong.low, wrong.high])
        with pytest.raises(ImplausibleError):
            journal.add(alone="m", seconds=-1.0, fresh=0.0)
    assert kept(tmp_path / "x.json").summary() == "0 operators, 0 models alone, 0 beside others"


def kept(path: Path, about: dict[str, object] = ABOUT) -> JournalContents:
    with closing(Journal(path, about)) as journal:
        return journal.kept


def fill(journal: Journal) -> None:
    journal.add(operator="a", seconds=[2.0, 3.0, 1.0, 4.0])
    journal.add(refused="b")
    journal.add(others=0.5, wall=1.0)
    journal.add(others=0.0, wall=3.0)
    journal.add(operator="c", seconds=[1.0, 1.0, 1.0, 1.0], exercise="m")
    journal.add(alone="m", seconds=0.5, fresh=4096.0)
    journal.add(beside="m", seconds=0.7)
    journal.add(wrapping=[{"name": "m", "parameters": 1, "bytes": 4, "extra": -1e-6, "whole": 0.5}])
    journal.add(operator="d", seconds=[1.0, 1.0, 1.0, 1.0], exercise="n")


def test_the_next_calibration_goes_on_from_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    with closing(Journal(path, ABOUT)) as first:
        fill(first)
        assert set(first.kept.operators) == {"a", "c", "d"}
    found = kept(path)
    # The operators of a model that was not trained yet are measured again, together with its iterations.
    assert found.operators == {"a": Measurement(2.0, 3.0, 1.0, 4.0), "c": Measurement(1.0, 1.0, 1.0, 1.0)}
    assert found.refused == {"b"}
    assert found.alone == {"m": {"seconds": 0.5, "fresh": 4096.0}}
    assert found.beside == {"m": 0.7}
    assert found.wrapping is not None and found.collective is None
    assert found.others_cores() == pytest.approx(0.125)


def test_every_byte_at_which_a_writer_may_end_leaves_whole_measurements(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    with closing(Journal(path, ABOUT)) as journal:
        fill(journal)
    whole = journal.path.read_bytes()
    for end in range(0, len(whole) + 1, 7):
        journal.path.write_bytes(whole[:end])
        with closing(Journal(path, ABOUT)) as again:
            assert set(again.kept.operators) <= {"a", "c"}
            again.add(operator="z", seconds=[1.0, 1.0, 1.0, 1.0])
        lines = journal.path.read_bytes().splitlines()
        assert all(json.loads(line) for line in lines)
        assert "z" in kept(path).operators


@pytest.mark.parametrize(
    ("about", "anew", "why"),
    [
        (ABOUT | {"threads": 2}, False, "threads was 1, and is 2"),
        (ABOUT | {"device": "b", "threads": 2}, False, "device was a CPU, and is b, threads was 1, and is 2"),
        (ABOUT | {"host": "h"}, False, "host was None, and is h"),
        (ABOUT, True, "a new one was asked for"),
    ],
)
def test_another_machines_or_versions_measurements_are_left_out(
    about: dict[str, object], anew: bool, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "cpu.json"
    with closing(Journal(path, ABOUT)) as journal:
        fill(journal)
    with closing(Journal(path, about, anew=anew)) as again:
        assert (again.left_out, again.kept.operators) == (why, {})
    with closing(Journal(path, about)) as third:
        assert (third.left_out, third.kept.operators) == (None, {})


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00\xff\n",
        b"[1]\n",
        b"{}\n",
        b'{"operator": "x"}\n',
        b'{"what": 1}\n',
        b'{"operator": "x", "seconds": [1, 1, -1, 1]}\n',
        b'{"operator": "x", "exercise": []}\n',
    ],
)
def test_damage_costs_what_follows_it_and_nothing_before(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    with closing(Journal(path, ABOUT)) as journal:
        fill(journal)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(b"".join([*lines[:2], damage, *lines[2:]]))
    found = kept(path)
    assert (set(found.operators), found.refused) == ({"a"}, set())


def test_two_calibrations_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    with closing(Journal(path, ABOUT)) as journal:
        with pytest.raises(ProphetError, match="another calibration writes"):
            Journal(path, ABOUT)
        journal.remove()
    assert list(tmp_path.iterdir()) == []
    kept(path)
    assert (tmp_path / f"cpu.json{SUFFIX}").exists()


BUSY = "import time\nprint('on', flush=True)\nwhile True: pass\n"


def test_a_core_that_somebody_else_loads_is_noticed() -> None:
    loader = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    try:
        assert loader.stdout is not None
        assert loader.stdout.readline() == b"on\n"
        found = busy.other_cores(0.5)
    finally:
        loader.kill()
        loader.communicate()
    assert found > 0.6
    assert busy.describe(found, os.cpu_count() or 1) is not None


def test_our_own_work_is_not_others() -> None:
    before = busy.reading()
    assert before is not None
    used = os.times().user
    while os.times().user - used < 0.3:
        pass
    after = busy.reading()
    assert after is not None
    assert after.own - before.own >= 0.3
    # Ticks of 10 ms: what others use is told to about that.
    assert busy.others(before, after) <= (after.all - before.all - 0.28) / (after.wall - before.wall)
    assert busy.others(before, None) == busy.others(after, before) == 0.0
    assert busy.describe(0.1, 2) is None


def test_where_the_system_tells_nothing_nothing_is_known(tmp_path: Path) -> None:
    assert busy.reading(tmp_path / "none") is None
