"""The memory of an iteration: who holds it how long, what of it is new, and how it is kept while operators are
measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from deepprophet.graph.memory.lifetimes import Lifetimes
from deepprophet.graph.subject import subject
from deepprophet.graph.trace import TraceOptions, trace
from evaluation.deepprophet import models
from tests.support.frameworks import prophet_subjects
from tests.support.paths import ROOT

MIB = 2**20

TRAINED = """
import json, resource, statistics, sys, torch
from deepprophet.device.loop import iteration
from deepprophet.graph.subject import subject
from evaluation.deepprophet import models
torch.set_num_threads(1)
run = iteration(subject(models.factory(sys.argv[1])(32)), "sgd", torch.device("cpu"))
found = []
for _ in range(15):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run()
    found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(json.dumps(statistics.median(found[4:]) * resource.getpagesize()))
"""

ONE_OPERATOR = """
import json, sys, torch
from deepprophet.device import bench
torch.set_num_threads(1)
key = json.dumps(["aten.embedding_dense_backward.default", [
    {"t": ["float32", [8, 48, 320], None]}, {"t": ["int64", [8, 48], None]}, 6000, -1, False], {}])
efforts = {"brief": bench.BRIEF, "thorough": bench.THOROUGH}
print(json.dumps([bench.measure(key, torch.device("cpu"), efforts[name]).near for name in sys.argv[1].split(",")]))
"""

GIVEN_BACK = """
import json, resource, sys, torch
from deepprophet.device.allocator import keep_memory
kept = keep_memory() if sys.argv[1] == "kept" else None
found = []
for _ in range(12):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [torch.ones(20 * 2**18) for _ in range(4)]
    del held
    found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(json.dumps({"kept": kept, "faults": sum(found[4:])}))
"""


def told(program: str, word: str, **environment: str):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, word],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_memory_is_held_until_nobody_needs_it() -> None:
    lifetimes = Lifetimes()
    kept = torch.zeros(5)
    first, view = torch.ones(1000), None
    lifetimes.look(0)
    lifetimes.note(0, [], [first.untyped_storage()])
    view = first[:10]
    lifetimes.look(1)
    lifetimes.note(1, [first.untyped_storage()._cdata], [view.untyped_storage()])
    second = kept + 1
    lifetimes.look(2)
    lifetimes.note(2, [kept.untyped_storage()._cdata], [second.untyped_storage()])
    del first
    lifetimes.look(3)
    assert [(one.size, one.born, one.died) for one in lifetimes.held] == [(4000, 0, None), (20, 2, None)]
    del view
    lifetimes.look(4)
    assert [(one.size, one.born, one.died) for one in lifetimes.held] == [(4000, 0, 4), (20, 2, None)]


def test_new_pages_are_about_as_many_as_the_system_gives() -> None:
    """In one process or another: where the heap's end is held by something small, it needs fewer."""
    graph = trace(subject(models.factory("dlrm")(32)))
    played = sum(operator.fresh_bytes for operator in graph.operators)
    assert played > 2 * MIB
    real: list[float] = []
    while len(real) < 10 and not any(one / 2 < played < one * 2 for one in real):
        real.append(told(TRAINED, "dlrm"))
    assert real[-1] / 2 < played < real[-1] * 2, real


def test_a_small_model_needs_no_new_page() -> None:
    graph = trace(subject(prophet_subjects.watched()))
    assert [operator.fresh_bytes for operator in graph.operators] == [0.0] * len(graph.operators)


def test_accelerators_keep_their_memory() -> None:
    graph = trace(subject(models.factory("mlp-deep")(8)), TraceOptions(device=torch.device("meta")))
    assert sum(operator.fresh_bytes for operator in graph.operators) == 0.0


def test_memory_is_kept_while_operators_are_measured() -> None:
    every = {
        "GLIBC_TUNABLES": f"glibc.malloc.mmap_threshold={2**17}"
    }  # each block mapped, and unmapped when given back
    lost, kept = told(GIVEN_BACK, "lost", **every), told(GIVEN_BACK, "kept", **every)
    if not kept["kept"]:
        pytest.skip("the C library is not glibc")
    assert kept["faults"] < lost["faults"] / 10


def test_a_few_calls_tell_what_many_do() -> None:
    """The first calls of an operator take its result's memory from the system, which takes longer than it does."""
    found: list[float] = []
    # What else the machine does can hold a few calls up, but not in process after process.
    while len(found) < 4 and not any(1 / 2 < share < 2 for share in found):
        brief, thorough = told(ONE_OPERATOR, "brief,thorough")
        found.append(brief / thorough)
    assert 1 / 2 < found[-1] < 2, found
