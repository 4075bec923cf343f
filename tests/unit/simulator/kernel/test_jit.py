"""What is compiled is kept by what all of its sources say, function by function, and who waits for it is told."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from simulator import compiling
from simulator.kernel import jit
from simulator.kernel.events import together

LOOPS = """
from simulator.kernel.jit import entry, inner

@inner
def first(x: float) -> float:
    return x + 1.0

@inner
def second(x: float) -> float:
    return first(x) * 2.0

@entry
def last(x: float) -> float:
    return second(x) + first(x)
"""
USE = """
import sys
from numba.core.event import Listener, install_listener
from loops import last

class Told(Listener):
    def on_start(self, event):
        print(event.data["dispatcher"].py_func.__name__, flush=True)

    def on_end(self, event):
        if event.data["dispatcher"].py_func.__name__ in sys.argv:
            raise KeyboardInterrupt

with install_listener("numba:compile", Told()):
    assert last(1.0) == 6.0
"""


def test_what_is_kept_is_of_these_sources_and_no_others(tmp_path):
    first, second = tmp_path / "kernel.py", tmp_path / "rates.py"
    first.write_text("a = 1\n")
    second.write_text("b = 2\n")
    before = jit.digest([first, second])
    assert jit.digest([second, first]) == before
    second.write_text("b = 3\n")
    assert jit.digest([first, second]) != before


def test_all_that_is_compiled_is_made_of_sources_that_count():
    counted = {f"simulator.kernel.{source.stem}" for source in jit.sources()}
    assert {function.py_func.__module__ for function in jit.functions} <= counted
    for source in jit.sources():
        for node in ast.walk(ast.parse(source.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            ours = {name for name in names if name.partition(".")[0] in ("simulator", "controller", "topologies")}
            assert ours <= counted, f"{source.name}: a change there would not be noticed"


def test_an_entry_is_kept_on_disk_and_the_compilers_own_settings_stay():
    before = vars(numba.config)["CACHE_DIR"]
    together(1.0)
    assert list(jit.kept().rglob("events.together-*.nbc"))
    assert before == vars(numba.config)["CACHE_DIR"]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
        "PYTHONPATH": f"{Path(jit.__file__).parents[2]}:{tmp_path}",
    }

    def compiled(*stop_at: str) -> tuple[int, list[str]]:
        command = [sys.executable, "-c", USE, *stop_at]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return done.returncode, done.stdout.decode().split()

    status, begun = compiled("second")
    assert status != 0
    assert begun == ["last", "second", "first"]
    assert compiled() == (0, ["last", "second"]), "first was done"
    assert compiled() == (0, [])


def test_what_cannot_be_kept_beside_the_source_is_kept_for_the_user_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setitem(vars(numba.config), "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = jit.kept(file)
    assert found is not None
    assert found.parent == tmp_path / "cache" / "trainyard"
    for nowhere in (str(file), "not/absolute"):
        monkeypatch.setenv("XDG_CACHE_HOME", nowhere)
        assert jit.kept(file) is None
    monkeypatch.setattr(jit, "_KEPT", None)
    monkeypatch.setattr(jit, "functions", [])
    assert jit.entry(lambda x: x + 1.0)(1.0) == 2.0


def test_all_that_python_calls_is_ready_once_prepared_and_then_nobody_is_told_anything():
    compiling.prepare()
    entries = [function for function in jit.functions if "no_cpython_wrapper" not in function.targetoptions]
    assert len(entries) >= 10
    assert [function.py_func.__name__ for function in entries if not function.signatures] == []
    told: list[str] = []
    compiling.prepare(told.append)
    assert told == []


def test_who_waits_for_the_compiler_is_told_before_and_after(monkeypatch):
    def use() -> None:
        numba.njit(lambda x: x + 1)(1)

    told: list[str] = []
    compiling.prepare(told.append, use=use)
    before, after = told
    assert re.match(rf"compiling the simulator's loops, \d+ of {len(jit.functions)} functions: ", before)
    assert before.endswith("once; if it is stopped, the next time goes on from there")
    assert after.startswith("compiled in ")
    monkeypatch.setattr(jit, "kept", lambda: None)
    compiling.prepare(told.append, use=use)
    assert "each time, for no folder to keep them in can be written to" in told[2]


def test_what_is_compiled_can_allocate_nothing_so_it_counts_no_references(monkeypatch):
    def allocates(n: int) -> float:
        return float(np.zeros(n).sum())

    monkeypatch.setattr(jit, "functions", [])
    assert numba.njit(allocates)(3) == 0.0
    with pytest.raises(numba.core.errors.TypingError):
        jit.entry(allocates)(3)


def test_who_waits_long_for_the_compiler_is_told_how_far_it_has_got():
    told: list[str] = []
    times = iter([0.0, 4.0, 11.0, 15.0, 30.0])
    announcer = compiling.Announcer(told.append, lambda: next(times))
    for name in ("heap.push", "heap.pop", "groups.move", "groups.move"):
        announcer.begins(name)
    announcer.end()
    assert told[1:] == ["still compiling after 11 s: 3 functions so far", "compiled in 30 s"]
