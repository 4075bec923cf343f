"""Measures a device, once: the operators of the calibration set alone, its models whole, and what an exchange costs a
host.

Needs PyTorch; takes minutes, and wants the machine to itself.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch

from host_reporter.prophet import bench
from host_reporter.prophet.calibration import Calibration, Collective, Context, Wrapping
from host_reporter.prophet.calibration_layers import layers
from host_reporter.prophet.calibration_set import Exercise, exercises
from host_reporter.prophet.costs import VIEW_WEIGHT
from host_reporter.prophet.device import provenance
from host_reporter.prophet.errors import ProphetError
from host_reporter.prophet.fit import fit
from host_reporter.prophet.graph import PHASES, Graph
from host_reporter.prophet.loop import iteration, timed
from host_reporter.prophet.measured import Measurement
from host_reporter.prophet.probe import REST
from host_reporter.prophet.rooflines import rooflines
from host_reporter.prophet.trace import How, trace

Say = Callable[[str], None]

PRIORS = (1.0, 0.7, 2e-11, 2.5e-10, 3e-6, 3e-6, 3e-6)
"""Of a context's factors, before anything was measured: as alone, far inputs as far, memory at 50 GB/s, 1 us a new
page, 3 us a call of each phase.
"""

TRUST = 0.01
HALF_TYPES = 4
"""Of so many exercises the operators are measured in bfloat16 too: for what is asked of it without a measurement."""

WRAPPED = ("dense-192x3-24", "dense-1400x1-20", "residual-176-40-20", "attention-400x8-56", "attention-160x4-48")
PATIENCE_SECONDS = 300.0
WHOLE_SECONDS = 0.8
"""That a model's whole iterations are measured."""


def calibrate(device: torch.device, threads: int, say: Say, *, quick: bool = False) -> Calibration:
    """Measure the device. Raises ProphetError, OSError."""
    torch.set_num_threads(threads)
    about = provenance(device, threads, quick=quick)
    chosen = list(exercises(quick=quick))
    graphs = {one.name: trace(one.subject(), How(one.optimizer, device=device)) for one in chosen}
    half = [trace(one.subject(), How(one.optimizer, "bfloat16", device=device)) for one in chosen[-HALF_TYPES:]]
    parts = [trace(one.subject(), How(one.optimizer, device=device)) for one in layers(quick=quick)]
    keys = [operator.key for graph in parts for operator in graph.operators if operator.family != "view"]
    keys += [operator.key for graph in half for operator in graph.operators]
    table: dict[str, Measurement] = {}
    _add(table, keys, device, say)
    rows, alone, happens = _alone(chosen, graphs, table, device, say)
    contexts = [_context(rows, alone, 0, happens)]
    if neighbours := _neighbours(about.cores, threads, device):
        beside = _beside(chosen, alone, device, threads=threads, neighbours=neighbours, say=say)
        contexts.append(_context(rows, beside, neighbours, happens))
    everything = (*graphs.values(), *half, *parts)
    operators = [operator for graph in everything for operator in graph.operators]
    wrapping, collective = Wrapping(), None
    if torch.distributed.is_available():
        say("what distributed training adds")
        wrapping = _wrapping(threads, [one.name for one in chosen if one.name in WRAPPED])
        collective = _collective()
    return Calibration(
        provenance=about,
        table={key: (m.near, m.far, m.low, m.high) for key, m in table.items()},
        rooflines=tuple(rooflines(operators, table)),
        contexts=tuple(contexts),
        wrapping=wrapping,
        collective=collective,
    )


def _neighbours(cores: int, threads: int, device: torch.device) -> int:
    """How many more workers there is room for beside one."""
    return max(cores // threads, 1) - 1 if device.type == "cpu" else 0


def _add(table: dict[str, Measurement], keys: Iterable[str], device: torch.device, say: Say | None = None) -> None:
    """Measure the operators that are not in the table."""
    wanted = [key for key in dict.fromkeys(keys) if key not in table]
    for number, key in enumerate(wanted):
        if say is not None and number % 100 == 0:
            say(f"operators alone: {number} of {len(wanted)}")
        try:
            table[key] = bench.measure(key, device)
        except bench.CannotMeasureError:
            continue


def _alone(
    chosen: Sequence[Exercise],
    graphs: Mapping[str, Graph],
    table: dict[str, Measurement],
    device: torch.device,
    say: Say,
) -> tuple[list[tuple[float, ...]], list[float], float]:
    """The operators of each model, and then at once its whole iterations: a machine is not as fast all the time.

    The rows to be fitted, the seconds of whole iterations, and how much there is of the new pages that are played.
    """
    rows, seconds = [], []
    played = counted = 0.0
    with _trained("alone", str(torch.get_num_threads()), str(device)) as tell:
        for one in chosen:
            _add(table, (operator.key for operator in graphs[one.name].operators), device)
            found = tell(f"{one.name} {WHOLE_SECONDS}")
            rows.append(row(graphs[one.name], table, found["fresh"]))
            seconds.append(found["seconds"])
            played += sum(operator.fresh_bytes for operator in graphs[one.name].operators)
            counted += found["fresh"]
            say(f"whole iterations of {one.name}: {1e3 * seconds[-1]:.2f} ms")
    return rows, seconds, min(counted / played, 1.0) if played else 0.0


def _beside(
    chosen: Sequence[Exercise],
    alone: Sequence[float],
    device: torch.device,
    *,
    threads: int,
    neighbours: int,
    say: Say,
) -> list[float]:
    """Whole iterations beside busy neighbours: by as much longer as they take than without them a moment before."""
    found = []
    with _busy(neighbours, threads) as tell:
        for one, before in zip(chosen, alone, strict=True):
            tell(REST)
            quiet = _seconds(one, device, 0.4)
            tell(one.name)
            found.append(before * _seconds(one, device, WHOLE_SECONDS) / quiet)
            say(f"beside {neighbours} busy neighbours, {one.name}: {1e3 * found[-1]:.2f} ms")
    return found


def _seconds(one: Exercise, device: torch.device, seconds: float) -> float:
    return statistics.median(timed(iteration(one.subject(), one.optimizer, device), device, seconds=seconds))


def row(graph: Graph, table: dict[str, Measurement], fresh: float) -> tuple[float, ...]:
    """What a context's factors are multiplied with, of one graph; ``fresh``: bytes on new pages, as counted."""
    near = far = moved = 0.0
    calls = dict.fromkeys(PHASES, 0.0)
    for operator in graph.operators:
        calls[operator.phase] += VIEW_WEIGHT if operator.family == "view" else 1.0
        moved += operator.bytes
        if (found := table.get(operator.key)) is not None:
            near += found.near
            far += (found.far - found.near) * operator.far_share
    return near, far, moved, fresh, *calls.values()


def _context(rows: Sequence[Sequence[float]], seconds: Sequence[float], neighbours: int, happens: float) -> Context:
    """``happens``: so much of the new pages that are played a process needs indeed, on average."""
    found = fit(rows, seconds, priors=PRIORS, trust=TRUST)
    near, far, byte, fresh, forward, backward, update = found.factors
    return Context(
        neighbours=neighbours, near=near, far=far, byte=byte, fresh=happens * fresh, calls=(forward, backward, update),
        low=found.low, high=found.high, samples=len(rows),
    )  # fmt: skip


@contextmanager
def _busy(neighbours: int, threads: int) -> Iterator[Callable[[str], None]]:
    """Processes that train the model that they are told, or rest, beside this one."""
    with ExitStack() as stack:
        running = [stack.enter_context(_trained("neighbour", str(threads))) for _ in range(neighbours)]

        def tell(name: str) -> None:
            for one in running:
                one(name)

        yield tell


@contextmanager
def _trained(*arguments: str) -> Iterator[Callable[[str], dict[str, Any]]]:
    """A process that answers each line with a JSON object. It raises ProphetError where it ends by itself."""
    process = _probe(*arguments, talks=True)

    def tell(line: str) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        said = ""
        with suppress(BrokenPipeError):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            said = process.stdout.readline()
        if not said:
            raise ProphetError(f"a process that trains models for the calibration ended by itself ({line})")
        answer: dict[str, Any] = json.loads(said)
        return answer

    try:
        yield tell
    finally:
        process.kill()
        process.communicate()


def _wrapping(threads: int, names: Sequence[str]) -> Wrapping:
    rows = _lines(_probe("wrapping", str(threads), *names))
    # What is less than nothing is chance.
    seconds = [max(line["extra"], 1e-7) for line in rows]
    parts = [(line["parameters"], line["bytes"]) for line in rows]
    found = fit(parts, seconds)
    return Wrapping(parameter=found.factors[0], byte=found.factors[1])


def _collective() -> Collective:
    """A ring of two over loopback: two rounds, in which each sends as many bytes as there are."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [_probe("collective", str(rank), "2", f"{folder}/store") for rank in range(2)]
        lines = _lines(*ranks)
    seconds = [statistics.median(line["seconds"]) for line in lines]
    found = fit([(2.0, line["bytes"]) for line in lines], seconds)
    work = statistics.median(line["work"] / line["bytes"] for line in lines if line["bytes"] >= 2**20)
    return Collective(
        message=found.factors[0], byte=found.factors[1], processor_byte=work,
        low=found.low, high=found.high,
    )  # fmt: skip


def _probe(*arguments: str, talks: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "host_reporter.prophet.probe", *arguments],
        stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if talks else subprocess.PIPE,
        text=True,
    )


def _lines(*processes: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """What the first tells, a JSON object a line; all of them must end well. Raises ProphetError."""
    told = ""
    try:
        for number, one in enumerate(processes):
            said, wrong = one.communicate(timeout=PATIENCE_SECONDS)
            if one.returncode:
                lines = wrong.strip().splitlines() or [f"status {one.returncode}"]
                raise ProphetError(f"what an exchange costs could not be measured: {lines[-1]}")
            told = said if number == 0 else told
    except subprocess.TimeoutExpired:
        raise ProphetError("what an exchange costs could not be measured: it did not end") from None
    finally:
        for one in processes:
            if one.poll() is None:
                one.kill()
                one.communicate()
    return [json.loads(line) for line in told.splitlines()]
