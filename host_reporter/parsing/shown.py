"""Shows what was read from a file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from controller.cli import output
from host_reporter.formats import registry
from host_reporter.formats.events import Point
from host_reporter.formats.outputs.advice import suggestion
from host_reporter.readers.log_source import HINT
from host_reporter.readers.whole import Whole


def show_json(file: str, whole: Whole) -> None:
    """Prints one JSON document."""
    described = whole.described
    output.show_json(
        {
            "file": file,
            "preset": described.preset,
            "sure": described.preset is not None and not described.is_guess,
            "metric": described.metric,
            "direction": described.direction,
            "iterations": described.iterations,
            "points": [
                _record(point, run if place == 0 and run > 1 else None)
                for run, points in enumerate(whole.runs, 1)
                for place, point in enumerate(points)
            ],
            "lines": whole.matched + whole.unmatched,
            "matched": whole.matched,
            "unmatched": list(whole.samples),
            "problems": _problems(whole),
        }
    )


def show(file: str, whole: Whole, most: int | None) -> None:
    """Prints a summary, the points (``most`` of each run; None: all) and what was not understood."""
    described = whole.described
    facts = [("file", file), ("format", _format(whole))]
    if described.metric is not None:
        facts.append(("metric", f"{described.metric}, {_better(described.direction)}"))
    if described.iterations is not None:
        facts.append(("length", f"{described.iterations:g} {'epochs' if described.counts_epochs else 'iterations'}"))
    facts.append(("lines", f"{whole.matched + whole.unmatched}, of which {whole.matched} are understood"))
    output.show_facts(facts)
    if whole.points:
        counter = "epoch" if described.counts_epochs else "iteration"
        output.show_table(("run", counter, described.metric or "metric", "time"), list(_rows(whole, most)))
    if whole.samples:
        output.show_lines(_unmatched(whole))
    for problem in _problems(whole):
        output.fail(problem, 0)


def _record(point: Point, run: int | None) -> dict[str, object]:
    record: dict[str, object] = {"iteration": point.iteration, "metric": point.metric, "time": point.time}
    if point.diverged:
        record["diverged"] = True
    return record if run is None else record | {"run": run}


def _problems(whole: Whole) -> list[str]:
    """Returns what the agent would say, without its advice to use this command."""
    problem = whole.problem.partition(HINT)[0] if whole.problem is not None else None
    if problem is None and whole.matched + whole.unmatched == 0:
        problem = "there is nothing in it"
    return [*([problem] if problem is not None else []), *registry.faults()]


def _format(whole: Whole) -> str:
    preset = whole.described.preset
    if preset is None:
        return "none is recognised"
    if not whole.described.is_guess:
        return preset
    return f"{preset}, which is a guess: nothing in the file proves it"


def _better(direction: str | None) -> str:
    return {"max": "larger is better", "min": "smaller is better"}.get(direction or "", "which direction is not known")


def _rows(whole: Whole, most: int | None) -> Iterator[tuple[object, ...]]:
    for run, points in enumerate(whole.runs, 1):
        left_out = len(points) - most if most is not None else 0
        half = (most or 0) // 2
        for place, point in enumerate(points):
            if left_out <= 0 or place < half or place >= half + left_out:
                yield run, f"{point.iteration:.12g}", _metric(point), _time(point.time)
            elif place == half:
                yield run, "...", f"{left_out} more", ""


def _metric(point: Point) -> str:
    word = "-" if point.metric is None else f"{point.metric:.6g}"
    return "diverged" if point.diverged else word


def _time(time: float | None) -> str:
    return "-" if time is None else datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")


def _unmatched(whole: Whole) -> Iterator[str]:
    yield ""
    yield "not understood, for example:"
    for line in whole.samples:
        yield f"  {output.clean(line)}"
    proposals = [pattern for line in whole.samples if (pattern := suggestion(line)) is not None]
    if proposals and not whole.points:
        yield "a pattern that would match, for 'trainyard parse --try' and progress.pattern in the job file:"
        yield f"  {output.clean(proposals[0])}"
