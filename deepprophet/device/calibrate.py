"""Measures a device, once: the operators of the calibration set alone, its models whole, and what an exchange costs a
host.

Needs PyTorch; takes minutes, and wants the machine to itself.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from deepprophet.costs import whole
from deepprophet.costs.calibration import Calibration, Collective, Wrapping
from deepprophet.costs.calibration_journal import Journal
from deepprophet.costs.fit import fit
from deepprophet.costs.measured import seconds
from deepprophet.costs.rooflines import rooflines
from deepprophet.device import bench, busy
from deepprophet.device.calibration_layers import layers
from deepprophet.device.calibration_set import Exercise, exercises
from deepprophet.device.device import provenance
from deepprophet.device.loop import iteration, timed
from deepprophet.device.probe import REST
from deepprophet.device.probe_processes import lines, neighbours_training, probe, trained
from deepprophet.graph.graph import Graph
from deepprophet.graph.spec import Call, TensorSpec
from deepprophet.graph.trace import TraceOptions, trace

Say = Callable[[str], None]

NOTHING = Call("aten.alias.default", (TensorSpec("float32", (1,)),), {}).key()
"""An operator that does nothing: what it takes is what a call costs here."""

HALF_TYPES = 4
"""The operators of so many exercises are measured in bfloat16 too, for the rooflines of that type."""

WRAPPED = ("dense-192x3-24", "dense-1400x1-20", "residual-176-40-20", "attention-400x8-56", "attention-160x4-48")
ROUND = 100
"""Progress is reported after so many operators."""

MAX_RANKS = 8
"""At most so many ranks compute and exchange at the same time, to measure what they take from each other."""

WHOLE_SECONDS = 0.8
"""Whole iterations of a model are measured for so many seconds."""


class Calibrator:
    """Measures a device, and notes each measurement in a journal, from whose own it goes on.

    ``device``, ``threads`` of one worker; ``say`` is told how far it is, for people.
    """

    def __init__(self, device: torch.device, threads: int, say: Say, journal: Journal, *, quick: bool = False) -> None:
        self._device, self._threads, self._say, self._journal = device, threads, say, journal
        self._kept = journal.kept
        self._about = provenance(device, threads, quick=quick)
        self._quick = quick
        self._disturbed = 0

    def run(self) -> Calibration:
        """Measure what is not there yet. Raises ProphetError, OSError, ValueError; what was measured stays noted."""
        device = self._device
        torch.set_num_threads(self._threads)
        chosen = list(exercises(quick=self._quick))
        graphs = {
            exercise.name: trace(exercise.subject(), TraceOptions(exercise.optimizer, device=device))
            for exercise in chosen
        }
        half = [
            trace(exercise.subject(), TraceOptions(exercise.optimizer, "bfloat16", device=device))
            for exercise in chosen[-HALF_TYPES:]
        ]
        parts = [
            trace(exercise.subject(), TraceOptions(exercise.optimizer, device=device))
            for exercise in layers(quick=self._quick)
        ]
        keys = [operator.key for graph in parts for operator in graph.operators if operator.family != "view"]
        keys += [operator.key for graph in half for operator in graph.operators]
        self._operators([NOTHING, *keys])
        self._alone(chosen, graphs)
        rows, alone = self._fitted(chosen, graphs)
        kinds = [exercise.kind for exercise in chosen]
        contexts = [whole.context(rows, alone, kinds, 0)]
        if neighbours := _neighbours(self._about.cores, self._threads, device):
            self._beside(chosen, neighbours)
            beside = [self._kept.beside[exercise.name] for exercise in chosen]
            contexts.append(whole.context(rows, beside, kinds, neighbours))
        wrapping, collective = self._exchange([exercise.name for exercise in chosen if exercise.name in WRAPPED])
        table = self._kept.operators
        operators = [operator for graph in (*graphs.values(), *half, *parts) for operator in graph.operators]
        if self._disturbed:
            self._say(f"{self._disturbed} operators never had the processor to themselves")
        return Calibration(
            provenance=self._about.model_copy(update={"others_cores": self._kept.others_cores()}),
            floor=self._floor(),
            table={key: (m.near, m.far, m.low, m.high) for key, m in table.items()},
            rooflines=tuple(rooflines(operators, table)),
            contexts=tuple(contexts),
            wrapping=wrapping,
            collective=collective,
        )

    def _floor(self) -> float:
        measured = self._kept.operators.get(NOTHING)
        return 0.0 if measured is None else measured.near

    def _operators(self, keys: Iterable[str], exercise: str | None = None) -> None:
        """Measure the operators that nobody has measured; what others did meanwhile is noted too."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self._kept.operators]
        wanted = [key for key in wanted if key not in self._kept.refused]
        for first in range(0, len(wanted), ROUND):
            before = busy.reading()
            for key in wanted[first : first + ROUND]:
                self._operator(key, exercise)
            after = busy.reading()
            others = busy.others(before, after)
            if before is not None and after is not None:
                self._journal.add(others=others, wall=after.wall - before.wall)
            if exercise is None:
                self._say(f"operators alone: {min(first + ROUND, len(wanted))} of {len(wanted)}{self._cached(others)}")

    def _cached(self, others: float) -> str:
        load = busy.describe(others, self._about.cores)
        return "" if load is None else f"; {load}"

    def _operator(self, key: str, exercise: str | None) -> None:
        try:
            measurement = bench.measure(key, self._device)
            if measurement.disturbed:
                # Once more: what had the processor may have ended.
                measurement = bench.measure(key, self._device)
        except bench.MeasurementError:
            self._journal.add(refused=key)
            return
        self._disturbed += measurement.disturbed
        of = {} if exercise is None else {"exercise": exercise}
        self._journal.add(
            operator=key, seconds=[measurement.near, measurement.far, measurement.low, measurement.high], **of
        )

    def _alone(self, chosen: Sequence[Exercise], graphs: Mapping[str, Graph]) -> None:
        """The operators of each model, and then at once its whole iterations: a machine is not as fast all the time."""
        left = [exercise for exercise in chosen if exercise.name not in self._kept.alone]
        if not left:
            return
        with trained("alone", str(self._threads), str(self._device)) as tell:
            for exercise in left:
                self._operators((operator.key for operator in graphs[exercise.name].operators), exercise.name)
                answer = tell(f"{exercise.name} {WHOLE_SECONDS}")
                self._journal.add(alone=exercise.name, seconds=answer["seconds"], fresh=answer["fresh"])
                late = "" if answer["share"] >= busy.MIN_PROCESSOR_SHARE else (
                    f"; it had a processor for {answer['share']:.0%} of that: something else runs on this device"
                )  # fmt: skip
                self._say(f"whole iterations of {exercise.name}: {1e3 * answer['seconds']:.2f} ms{late}")

    def _fitted(
        self, chosen: Sequence[Exercise], graphs: Mapping[str, Graph]
    ) -> tuple[list[tuple[float, ...]], list[float]]:
        """The rows to be fitted, and the seconds of whole iterations."""
        alone = [self._kept.alone[exercise.name] for exercise in chosen]
        rows = [
            whole.row(graphs[exercise.name], self._kept.operators, iteration_of["fresh"], self._floor())
            for exercise, iteration_of in zip(chosen, alone, strict=True)
        ]
        return rows, [iteration_of["seconds"] for iteration_of in alone]

    def _beside(self, chosen: Sequence[Exercise], neighbours: int) -> None:
        """Whole iterations beside busy neighbours: by as much longer as they take than without them a moment before."""
        left = [exercise for exercise in chosen if exercise.name not in self._kept.beside]
        if not left:
            return
        with neighbours_training(neighbours, self._threads) as tell:
            for exercise in left:
                tell(REST)
                quiet = seconds(_seconds(exercise, self._device, 0.4), f"an iteration of {exercise.name}")
                tell(exercise.name)
                ratio = _seconds(exercise, self._device, WHOLE_SECONDS) / quiet
                self._journal.add(beside=exercise.name, seconds=self._kept.alone[exercise.name]["seconds"] * ratio)
                milliseconds = 1e3 * self._kept.beside[exercise.name]
                self._say(f"beside {neighbours} busy neighbours, {exercise.name}: {milliseconds:.2f} ms")

    def _exchange(self, names: Sequence[str]) -> tuple[Wrapping, Collective | None]:
        """What distributed training adds: to a worker alone, and at a host for each message and byte."""
        if not torch.distributed.is_available():
            return Wrapping(), None
        self._say("what distributed training adds")
        if self._kept.wrapping is None:
            self._journal.add(wrapping=lines(probe("wrapping", str(self._threads), *names)))
        if self._kept.collective is None:
            with tempfile.TemporaryDirectory() as folder:
                ranks = [probe("collective", str(rank), "2", f"{folder}/store") for rank in range(2)]
                self._journal.add(collective=lines(*ranks))
        if self._kept.overlap is None and self._device.type == "cpu":
            with tempfile.TemporaryDirectory() as folder:
                world = min(max(_neighbours(self._about.cores, self._threads, self._device) + 1, 2), MAX_RANKS)
                begin = ("overlap", str(self._threads))
                ranks = [probe(*begin, str(rank), str(world), f"{folder}/store", *names) for rank in range(world)]
                self._journal.add(overlap=lines(*ranks))
        collective = _collective(self._kept.collective or [])
        lost = _lost_byte(self._kept.overlap or [])
        return _wrapping(self._kept.wrapping or []), collective.model_copy(update={"lost_byte": lost})


def _neighbours(cores: int, threads: int, device: torch.device) -> int:
    """How many more workers there is room for beside one."""
    return max(cores // threads, 1) - 1 if device.type == "cpu" else 0


def _seconds(exercise: Exercise, device: torch.device, length: float) -> float:
    return statistics.median(timed(iteration(exercise.subject(), exercise.optimizer, device), device, seconds=length))


def _wrapping(rows: Sequence[Mapping[str, Any]]) -> Wrapping:
    # What is less than nothing is chance.
    fitted = fit([(row["parameters"], row["bytes"]) for row in rows], [max(row["extra"], 1e-7) for row in rows])
    return Wrapping(parameter=fitted.factors[0], byte=fitted.factors[1])


def _lost_byte(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Seconds that an iteration takes longer for each byte that is exchanged meanwhile."""
    lost = [(row["busy"] / row["quiet"] - 1.0) * row["sending"] / row["bytes"] for row in rows]
    return max(statistics.median(lost), 0.0) if lost else None


def _collective(rows: Sequence[Mapping[str, Any]]) -> Collective:
    """A ring of two over loopback: two rounds, in which each sends as many bytes as there are."""
    fitted = fit([(2.0, row["bytes"]) for row in rows], [statistics.median(row["seconds"]) for row in rows])
    work = statistics.median(row["work"] / row["bytes"] for row in rows if row["bytes"] >= 2**20)
    return Collective(
        message=fitted.factors[0], byte=fitted.factors[1], processor_byte=work,
        low=fitted.low, high=fitted.high,
    )  # fmt: skip
