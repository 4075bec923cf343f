"""A prediction: find the calibration, trace, measure what is missing, predict. Needs PyTorch."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from deepprophet import targets
from deepprophet.choices import TYPES, WHOLE_SECONDS
from deepprophet.costs import sheet, store
from deepprophet.costs.calibration import Calibration
from deepprophet.costs.measured import Measurement
from deepprophet.device import bench, busy, device
from deepprophet.device.missing import measure
from deepprophet.errors import InputError
from deepprophet.factories.load import load_subject
from deepprophet.graph.graph import Graph
from deepprophet.graph.plans import ModelPlan
from deepprophet.graph.trace import TraceOptions, trace
from deepprophet.predict import document, mapping, network
from deepprophet.predict.document import PredictionReport
from deepprophet.predict.mapping import MappingSpec
from deepprophet.predict.network import NetworkSpec
from deepprophet.predict.prediction import Configuration, Prediction, predict

Doing = Callable[[str, bool], None]

MAX_TABLE_ENTRIES = 20_000
"""A calibration keeps at most so many operators; the oldest measurements of predictions go first."""

MEASURED_BY = WHOLE_SECONDS - 1.0
"""Measuring ends this many seconds after the command began; the rest of the time is for the predictions."""

MIN_MEASURE_SECONDS = 0.3
"""Each graph is measured for at least so many seconds, however long the rest takes."""

PICTURES = (".png", ".svg", ".pdf")


def predict_all(options: argparse.Namespace, began: float, doing: Doing) -> str:
    """Predict every combination that was asked; the text to tell. ``began``: the command, by ``time.perf_counter``.

    ``doing`` is told what is done next, and whether that is code of the factory's. Raises ProphetError, OSError, and
    whatever the factory's code raises that is no exception of an error.
    """
    _check(options)
    reports, head = _predictions(options, began, doing)
    if options.json:
        return json.dumps(document.document(reports, head), indent=2, allow_nan=False) + "\n"
    return "".join(f"{_clean(line)}\n" for line in _lines(reports, head["notes"]))


def _predictions(
    options: argparse.Namespace, began: float, doing: Doing
) -> tuple[list[PredictionReport], dict[str, Any]]:
    """Every prediction, with what they were made with; the files that were asked for are written."""
    where = device.pick(options.device)
    here = device.describe(where)
    path, known = _known(options, here)
    described = network.read(options.network) if options.network is not None else None
    spread = mapping.read(options.mapping) if options.mapping is not None else mapping.PLAIN
    torch.set_num_threads(options.threads)
    notes = _provenance_notes(known, options.threads, here, where.type)
    measurable = known.provenance.device == here and options.device_sheet is None
    if options.measure and not measurable:
        raise InputError(
            f"--measure adds to a calibration what is measured here, on {here}; {path} is of {known.provenance.device}"
        )
    sizes = options.batch_size or [None]
    measuring = _Measuring(known, where, options.measure, began, len(sizes) * len(options.dtype))
    reports: list[PredictionReport] = []
    traced = 0.0
    try:
        for size in sizes:
            doing(f"{options.factory} was called", True)
            example = load_subject(options.factory, size, options.length)
            notes += [note for note in example.notes if note not in notes]
            for dtype in options.dtype:
                start = time.perf_counter()
                doing(f"an iteration of {options.factory} was traced", True)
                how = TraceOptions(options.optimizer, TYPES[dtype], size, where, _plan(spread), spread.accumulate)
                graph = trace(example, how)
                traced += time.perf_counter() - start
                doing(f"operators of {options.factory} were measured", False)
                # What another device takes cannot be measured here.
                if measurable:
                    measuring.add(graph)
                reports += [
                    _made(predict(graph, known, measuring.fresh, configuration), dtype, link, options)
                    for configuration, link in _asked(described, spread, options)
                ]
    finally:
        # A fault in the last of several sizes costs no measurement of those before.
        if measuring.fresh and options.measure is not None:
            _keep(path, known, measuring.fresh)
    if measuring.fresh and (load := busy.describe(measuring.others, device.cores())) is not None:
        notes.append(f"while operators were measured just now {load}: their times are too long")
    head = {
        "command": shlex.join(["trainyard", *sys.argv[1:]]) if sys.argv[1:2] == ["predict"] else "trainyard predict",
        "calibration": {"file": str(path), **known.provenance.model_dump()},
        "seconds": {"tracing": traced, "measuring": measuring.seconds, "all": time.perf_counter() - began},
        "notes": notes,
    }
    _write_files(reports, options)
    return reports, head


def _known(options: argparse.Namespace, here: str) -> tuple[Path, Calibration]:
    """What is known of the device, and the file that says it."""
    if options.device_sheet is not None:
        told = sheet.read(options.device_sheet, options.dtype)
        return options.device_sheet, told.calibration(options.threads, torch.__version__)
    path = options.calibration or store.path_of(os.environ, here, options.threads)
    return path, store.read(path, here, options.threads, _how(options))


@dataclass
class _Measuring:
    """Measures operators of a command's graphs for ``budget_seconds``; None: while the command has time left."""

    known: Calibration
    where: torch.device
    budget_seconds: float | None
    began: float
    graphs_left: int
    fresh: dict[str, Measurement] = field(default_factory=dict)
    seconds: float = 0.0
    others: float = 0.0
    """The most cores that other programs used meanwhile."""

    def add(self, graph: Graph) -> None:
        """Measure what a graph has that nobody has measured."""
        start = time.perf_counter()
        if self.budget_seconds is not None:
            effort, left = bench.THOROUGH, self.budget_seconds - self.seconds
        else:
            effort, left = (
                bench.BRIEF,
                max((MEASURED_BY - (start - self.began)) / self.graphs_left, MIN_MEASURE_SECONDS),
            )
        before = busy.reading()
        known = self.known.with_table(self.fresh)
        measure(graph, known, self.where, seconds=left, effort=effort, fresh=self.fresh)
        self.others = max(self.others, busy.others(before, busy.reading()))
        self.graphs_left -= 1
        self.seconds += time.perf_counter() - start


def _made(prediction: Prediction, dtype: str, link: float | None, options: argparse.Namespace) -> PredictionReport:
    spec = prediction.registration(options.factory, options.iterations)
    return PredictionReport(options.factory, prediction.graph.batch_size, dtype, link, prediction, spec)


def _plan(spread: MappingSpec) -> ModelPlan:
    """What a mapping changes of the model itself."""
    if spread.tensor is None:
        return ModelPlan(spread.checkpoint)
    return ModelPlan(spread.checkpoint, spread.tensor.ranks, spread.tensor.columns, spread.tensor.rows)


def _asked(
    described: NetworkSpec | None, spread: MappingSpec, options: argparse.Namespace
) -> Iterator[tuple[Configuration, float | None]]:
    """Every combination, with the rate of its links where they are all the same."""
    for workers in options.workers:
        for architecture in options.architecture:
            # A worker alone crosses no link.
            alone = workers == 1 and architecture == "ring"
            for rate in (options.link_rate or [None])[: 1 if alone else None]:
                over = _network(described, workers, architecture, rate, options.latency)
                link = rate if rate is not None or described is not None else over.hosts[0].egress_bps
                yield Configuration(workers, architecture, over, spread), None if alone else link


def _how(options: argparse.Namespace) -> str:
    """What else ``--calibrate`` needs to be for what is asked here."""
    device_ = "" if options.device == "cpu" else f" --device {options.device}"
    return device_ + ("" if options.calibration is None else f" --calibration {options.calibration}")


def _network(
    described: NetworkSpec | None, workers: int, architecture: str, rate: float | None, latency: float | None
) -> NetworkSpec:
    if described is None:
        # A server of its own beside the workers, so that its link is seen.
        count = workers + 1 if architecture == "ps" else workers
        return network.uniform(count, rate or 1e9, 50e-6 if latency is None else latency)
    chosen = described if rate is None else network.at_rate(described, rate)
    return chosen if latency is None else chosen.model_copy(update={"latency_seconds": latency})


def _check(options: argparse.Namespace) -> None:
    if options.device_sheet is not None:
        for name in ("calibration", "measure"):
            if getattr(options, name) is not None:
                raise InputError(f"--device-sheet is instead of a calibration; leave --{name} out")
    several = [
        name
        for name in ("batch_size", "dtype", "workers", "architecture", "link_rate")
        if len(getattr(options, name) or [0]) > 1
    ]
    for name in ("timeline", "registration"):
        if getattr(options, name) is not None and several:
            given = ", ".join(f"--{option.replace('_', '-')}" for option in several)
            raise InputError(f"--{name} is of one prediction; give one value to {given}")
    if options.timeline is not None and options.timeline.suffix not in PICTURES:
        raise InputError(f"--timeline {options.timeline}: it must end with {', '.join(PICTURES)}")
    if options.timeline is not None and find_spec("matplotlib") is None:
        raise InputError("--timeline: matplotlib is not installed in this environment: pip install matplotlib")
    for name in ("timeline", "registration"):
        if (path := getattr(options, name)) is not None:
            targets.check(path, f"--{name}")


def _provenance_notes(known: Calibration, threads: int, here: str, kind: str) -> list[str]:
    notes = []
    if known.provenance.device != here:
        notes.append(f"the calibration is of {known.provenance.device}, and so are the times; this is {here}")
    if known.provenance.kind != kind:
        notes.append(
            f"the operators are those that PyTorch runs on {kind}, and their times are of {known.provenance.kind}"
        )
    if known.provenance.date == sheet.NOT_MEASURED:
        notes.append("the device is known by a sheet: nothing was measured on it, so the interval is wide")
    if known.provenance.torch != torch.__version__:
        notes.append(
            f"the calibration is of PyTorch {known.provenance.torch}, this is {torch.__version__}: calibrate again "
            "(trainyard predict --calibrate)"
        )
    if known.provenance.threads != threads:
        notes.append(f"the calibration is of {known.provenance.threads} threads a worker, not {threads}")
    if (load := busy.describe(known.provenance.others_cores, known.provenance.cores)) is not None:
        notes.append(f"while the calibration was measured {load}: its times are too long; calibrate again")
    return notes


def _keep(path: Path, known: Calibration, fresh: dict[str, Measurement]) -> None:
    merged = known.with_table(fresh)
    if len(merged.table) > MAX_TABLE_ENTRIES:
        kept = dict(list(merged.table.items())[-MAX_TABLE_ENTRIES:])
        merged = merged.model_copy(update={"table": kept})
    try:
        store.write(path, merged)
    except OSError as error:
        sys.stderr.write(f"predict: what was measured is not kept: {error}\n")


def _write_files(reports: Sequence[PredictionReport], options: argparse.Namespace) -> None:
    if options.registration is not None:
        text = reports[0].spec.model_dump_json(indent=2, exclude_none=True) + "\n"
        scratch = options.registration.with_name(f"{options.registration.name}.{os.getpid()}.tmp")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(options.registration)
    if options.timeline is not None:
        from deepprophet.predict import timeline  # noqa: PLC0415 - matplotlib takes a while

        timeline.draw(reports[0], options.timeline)


def _lines(reports: Sequence[PredictionReport], notes: Sequence[str]) -> Iterator[str]:
    """Yield the lines for people."""
    facts: list[tuple[str, str]] = []
    if len(reports) > 1:
        titles, rows = document.rows(reports)
        yield from _columns([titles, *rows])
        facts += [
            ("note", note) for note in dict.fromkeys(note for report in reports for note in report.prediction.notes)
        ]
        facts += document.unseen_facts(max((report.prediction.unseen for report in reports), key=len))
    else:
        facts += document.facts(reports[0])
    facts += [("note", note) for note in notes]
    width = max((len(name) for name, _ in facts), default=0)
    yield from (f"{name.ljust(width)}  {value}" for name, value in facts)


def _columns(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    for line in lines:
        yield "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))


def _clean(text: str) -> str:
    """Return the text without control characters: names in a model's code must not control the terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)
