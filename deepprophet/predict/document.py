"""A prediction as a document (``--json``) and as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from controller.wire import JobSpec
from deepprophet.costs.costs import Unseen
from deepprophet.graph.spec import parse, readable
from deepprophet.predict.prediction import Prediction

MAX_UNSEEN = 20
MAX_LISTED = 5
"""The lines for people name at most so many operators of known families."""


@dataclass(frozen=True)
class PredictionReport:
    """A prediction with its model, batch size, data type, link rate and registration."""

    model: str
    batch_size: int
    dtype: str
    link_bps: float | None
    prediction: Prediction
    spec: JobSpec


def document(reports: Sequence[PredictionReport], head: dict[str, Any]) -> dict[str, Any]:
    """The whole answer: what it was made with, and a prediction for each combination that was asked."""
    return {**head, "predictions": [as_json(report) for report in reports]}


def as_json(report: PredictionReport) -> dict[str, Any]:
    """Return one prediction as JSON."""
    prediction, played = report.prediction, report.prediction.played
    return {
        "model": report.model,
        "batch_size": report.batch_size,
        "dtype": report.dtype,
        "workers": prediction.configuration.workers,
        "architecture": prediction.configuration.architecture,
        "link_bps": report.link_bps,
        "iteration_seconds": prediction.seconds,
        "interval_seconds": [prediction.low, prediction.high],
        "interval_share": 0.8,
        "compute_seconds": played.compute,
        "model_compute_seconds": list(prediction.compute),
        "exposed_communication_seconds": played.exposed,
        "overlapped_communication_seconds": played.overlapped,
        "examples_per_iteration": prediction.examples,
        "examples_per_second": prediction.examples / prediction.seconds if prediction.seconds else None,
        "bytes_per_iteration": prediction.bytes,
        "gradient_bytes": prediction.graph.gradient_bytes,
        "buckets": [{"bytes": b.bytes, "parameters": len(b.parameters)} for b in prediction.buckets],
        "critical_path": critical_path(prediction),
        "cost_shares": shares(prediction),
        "unseen_operators": [
            {"operator": readable(parse(key)), "seconds": operator.seconds, "known_by": operator.way}
            for key, operator in list(prediction.unseen.items())[:MAX_UNSEEN]
        ],
        "unseen_count": len(prediction.unseen),
        "operators": len(prediction.graph.operators),
        "workers_per_core": prediction.stretch,
        "notes": list(prediction.notes),
        "registration": report.spec.model_dump(mode="json", exclude_none=True),
    }


def shares(prediction: Prediction) -> dict[str, float]:
    """How much of the operators' time is known in which way."""
    whole = sum(prediction.ways.values())
    return {way: seconds / whole if whole else 0.0 for way, seconds in prediction.ways.items()}


def critical_path(prediction: Prediction) -> list[dict[str, Any]]:
    """What decides how long an iteration takes, one after the other; neighbours of a kind as one."""
    spans = [prediction.played.spans[place] for place in prediction.played.critical]
    path = []
    for (name, kind), group in groupby(spans, key=lambda span: (span.name, span.kind)):
        parts = list(group)
        path.append({"name": name, "kind": kind, "start": parts[0].start, "seconds": parts[-1].end - parts[0].start})
    return path


def rows(reports: Sequence[PredictionReport]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A table of several predictions: titles, and a row each."""
    titles = (
        "batch",
        "type",
        "workers",
        "exchange",
        "link",
        "iteration",
        "80 %",
        "compute",
        "exposed",
        "hidden",
        "bytes",
    )
    lines: list[tuple[str, ...]] = []
    for part in reports:
        p = part.prediction
        lines.append(
            (
                str(part.batch_size), part.dtype, str(p.configuration.workers),
                p.configuration.architecture if p.demand else "-",
                rate(part.link_bps) if p.demand else "-", span(p.seconds), f"{span(p.low)} to {span(p.high)}",
                span(p.played.compute), span(p.played.exposed), span(p.played.overlapped), size(p.bytes),
            )
        )  # fmt: skip
    return titles, lines


def facts(report: PredictionReport) -> list[tuple[str, str]]:
    """Return one prediction as lines for people: names and values."""
    prediction, played = report.prediction, report.prediction.played
    lines = [
        ("model", f"{report.model}, batch {report.batch_size}, {report.dtype}"),
        ("iteration", f"{span(prediction.seconds)} (80 %: {span(prediction.low)} to {span(prediction.high)})"),
        ("compute", span(played.compute)),
        ("exposed communication", span(played.exposed)),
        ("overlapped communication", span(played.overlapped)),
        (
            "bytes an iteration",
            f"{size(prediction.bytes)} over the network, {size(prediction.graph.gradient_bytes)} of gradients",
        ),
        ("buckets", ", ".join(size(bucket.bytes) for bucket in prediction.buckets) or "none"),
        ("critical path", "; ".join(f"{p['name']} {span(p['seconds'])}" for p in critical_path(prediction))),
        ("known by", ", ".join(f"{way} {share:.0%}" for way, share in shares(prediction).items() if share > 0)),
    ]
    lines += unseen_facts(prediction.unseen)
    lines += [("note", note) for note in prediction.notes]
    return lines


def unseen_facts(unseen: Mapping[str, Unseen]) -> list[tuple[str, str]]:
    """Which operators the calibration has not seen, for people. Whose family is unknown errs most: those are apart."""
    guessed = [item for item in unseen.items() if item[1].way == "guess"]
    by_family = [item for item in unseen.items() if item[1].way == "roofline"]
    measured = [item for item in unseen.items() if item[1].way == "measured"]
    lines = []
    if guessed:
        count = f"{_count(guessed)}, guessed from all other families; --measure has more time. "
        lines.append(("unknown family", count + _longest(guessed, MAX_UNSEEN)))
    if by_family:
        count = f"{_count(by_family)}, predicted by family; --measure has more time. "
        lines.append(("never measured", count + _longest(by_family, MAX_LISTED)))
    if measured:
        count = f"{_count(measured)} that the calibration has not seen. "
        lines.append(("measured just now", count + _longest(measured, MAX_LISTED)))
    return lines


def _count(operators: Sequence[object]) -> str:
    return f"{len(operators)} operator{'s' if len(operators) > 1 else ''}"


def _longest(ordered: Sequence[tuple[str, Unseen]], most: int) -> str:
    return "The longest: " + "; ".join(
        f"{readable(parse(key))} ({span(operator.seconds)})" for key, operator in ordered[:most]
    )


def span(seconds: float) -> str:
    """Seconds for people."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 or seconds == 0 else f"{seconds * 1e6:.3g} us"


def size(amount: float) -> str:
    """Bytes for people."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= factor:
            return f"{amount / factor:.3g} {unit}"
    return f"{amount:.0f} B"


def rate(bps: float | None) -> str:
    """Bits a second for people."""
    if bps is None:
        return "as described"
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= factor:
            return f"{bps / factor:.3g} {unit}"
    return f"{bps:.0f} bit/s"
