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

MOST_UNSEEN = 20
MOST_TOLD = 5
"""Of operators of known families, among the lines for people."""


@dataclass(frozen=True)
class Made:
    """A prediction with what it is of."""

    model: str
    batch_size: int
    dtype: str
    link_bps: float | None
    found: Prediction
    spec: JobSpec


def document(made: Sequence[Made], head: dict[str, Any]) -> dict[str, Any]:
    """The whole answer: what it was made with, and a prediction for each combination that was asked."""
    return {**head, "predictions": [one(prediction) for prediction in made]}


def one(made: Made) -> dict[str, Any]:
    """One prediction."""
    found, played = made.found, made.found.played
    return {
        "model": made.model,
        "batch_size": made.batch_size,
        "dtype": made.dtype,
        "workers": found.asked.workers,
        "architecture": found.asked.architecture,
        "link_bps": made.link_bps,
        "iteration_seconds": found.seconds,
        "interval_seconds": [found.low, found.high],
        "interval_share": 0.8,
        "compute_seconds": played.compute,
        "model_compute_seconds": list(found.compute),
        "exposed_communication_seconds": played.exposed,
        "overlapped_communication_seconds": played.overlapped,
        "examples_per_second": made.batch_size * found.asked.workers / found.seconds if found.seconds else None,
        "bytes_per_iteration": found.bytes,
        "gradient_bytes": found.graph.gradient_bytes,
        "buckets": [{"bytes": b.bytes, "parameters": len(b.parameters)} for b in found.buckets],
        "critical_path": critical_path(found),
        "cost_shares": shares(found),
        "unseen_operators": [
            {"operator": readable(parse(key)), "seconds": operator.seconds, "known_by": operator.way}
            for key, operator in list(found.unseen.items())[:MOST_UNSEEN]
        ],
        "unseen_count": len(found.unseen),
        "operators": len(found.graph.operators),
        "workers_per_core": found.stretch,
        "notes": list(found.notes),
        "registration": made.spec.model_dump(mode="json", exclude_none=True),
    }


def shares(found: Prediction) -> dict[str, float]:
    """How much of the operators' time is known in which way."""
    whole = sum(found.ways.values())
    return {way: seconds / whole if whole else 0.0 for way, seconds in found.ways.items()}


def critical_path(found: Prediction) -> list[dict[str, Any]]:
    """What decides how long an iteration takes, one after the other; neighbours of a kind as one."""
    spans = [found.played.spans[place] for place in found.played.critical]
    path = []
    for (name, kind), group in groupby(spans, key=lambda span: (span.name, span.kind)):
        parts = list(group)
        path.append({"name": name, "kind": kind, "start": parts[0].start, "seconds": parts[-1].end - parts[0].start})
    return path


def rows(made: Sequence[Made]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
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
    found: list[tuple[str, ...]] = []
    for part in made:
        p = part.found
        found.append(
            (
                str(part.batch_size), part.dtype, str(p.asked.workers), p.asked.architecture if p.demand else "-",
                rate(part.link_bps) if p.demand else "-", span(p.seconds), f"{span(p.low)} to {span(p.high)}",
                span(p.played.compute), span(p.played.exposed), span(p.played.overlapped), size(p.bytes),
            )
        )  # fmt: skip
    return titles, found


def facts(made: Made) -> list[tuple[str, str]]:
    """One prediction for people."""
    found, played = made.found, made.found.played
    told = [
        ("model", f"{made.model}, batch {made.batch_size}, {made.dtype}"),
        ("iteration", f"{span(found.seconds)} (80 %: {span(found.low)} to {span(found.high)})"),
        ("compute", span(played.compute)),
        ("exposed communication", span(played.exposed)),
        ("overlapped communication", span(played.overlapped)),
        (
            "bytes an iteration",
            f"{size(found.bytes)} over the network, {size(found.graph.gradient_bytes)} of gradients",
        ),
        ("buckets", ", ".join(size(bucket.bytes) for bucket in found.buckets)),
        ("critical path", "; ".join(f"{p['name']} {span(p['seconds'])}" for p in critical_path(found))),
        ("known by", ", ".join(f"{way} {share:.0%}" for way, share in shares(found).items() if share > 0)),
    ]
    told += unseen_facts(found.unseen)
    told += [("note", note) for note in found.notes]
    return told


def unseen_facts(unseen: Mapping[str, Unseen]) -> list[tuple[str, str]]:
    """Which operators the calibration has not seen, for people. Whose family is unknown errs most: those are apart."""
    guessed = [item for item in unseen.items() if item[1].way == "guess"]
    by_family = [item for item in unseen.items() if item[1].way == "roofline"]
    measured = [item for item in unseen.items() if item[1].way == "measured"]
    told = []
    if guessed:
        count = f"{_count(guessed)}, guessed from all other families; --measure has more time. "
        told.append(("unknown family", count + _longest(guessed, MOST_UNSEEN)))
    if by_family:
        count = f"{_count(by_family)}, predicted by family; --measure has more time. "
        told.append(("never measured", count + _longest(by_family, MOST_TOLD)))
    if measured:
        count = f"{_count(measured)} that the calibration has not seen. "
        told.append(("measured just now", count + _longest(measured, MOST_TOLD)))
    return told


def _count(operators: Sequence[object]) -> str:
    return f"{len(operators)} operator{'s' if len(operators) > 1 else ''}"


def _longest(ordered: Sequence[tuple[str, Unseen]], most: int) -> str:
    return "The longest: " + "; ".join(f"{readable(parse(key))} ({span(one.seconds)})" for key, one in ordered[:most])


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
