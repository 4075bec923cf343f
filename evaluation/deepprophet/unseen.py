"""The errors on drawn models: those that were studied, and those that nobody had looked at, each apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from rich.table import Table

from deepprophet.costs.fit import quantile
from evaluation import summary
from evaluation.deepprophet.arms import DEFAULT_WAY, CaseResult
from evaluation.deepprophet.drawn import listed
from simulator.reports.statistics import mean_interval

UNSEEN = "unseen"
AIMS = {"mean_absolute_error": 0.08, "p90_absolute_error": 0.15, "worst": 0.25}
GUESSED = 0.1
"""A prediction of which this share or more is of unknown operators has said beforehand that it may be far off."""


def add_up(cases: Sequence[tuple[str, CaseResult]]) -> dict[str, Any]:
    """Returns the errors of each draw, by its name, with a row for each of its models."""
    drawn = listed.models()
    summarised: dict[str, Any] = {}
    for name, draw in listed.draws().items():
        own = [(drawn[model], case) for model, case in cases if model in drawn and drawn[model] in draw.models]
        if not own:
            continue
        errors = [_error(case) for _, case in own]
        summarised[name] = {
            "seed": draw.seed,
            "transformers": draw.transformers,
            "skipped": dict(draw.skipped),
            "refused": len(draw.refused),
            "models": len(own),
            "kinds": len({each.kind for each, _ in own}),
            "mean_absolute_error": fmean(map(abs, errors)),
            "ci95": list(mean_interval([abs(error) for error in errors])),
            "p90_absolute_error": quantile([abs(error) for error in errors], 0.9),
            "worst": max(map(abs, errors)),
            "in_interval": fmean(_is_inside(case) for _, case in own),
            "rows": [_row(each, case) for each, case in own],
        }
    return summarised


def _row(drawn: listed.Drawn, case: CaseResult) -> dict[str, Any]:
    seconds, low, high = case.predicted[DEFAULT_WAY]
    return {
        "model": drawn.name,
        "kind": drawn.kind,
        "batch_size": drawn.batch_size,
        "measured": case.seconds,
        "predicted": seconds,
        "interval": [low, high],
        "error": _error(case),
        "is_inside": _is_inside(case),
        "guessed": case.guessed,
        "measured_twice": case.relative_difference,
    }


def _error(case: CaseResult) -> float:
    """Returns by which share a prediction is too long; below 0, too short."""
    return case.predicted[DEFAULT_WAY][0] / case.seconds - 1.0


def _is_inside(case: CaseResult) -> bool:
    _, low, high = case.predicted[DEFAULT_WAY]
    return low <= case.seconds <= high


def headline(drawn: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the figures of the models that nobody had looked at."""
    if UNSEEN not in drawn:
        return []
    errors = drawn[UNSEEN]
    of = f"DeepProphet on {errors['models']} unseen architectures of {errors['kinds']} kinds"
    return [
        summary.claim(
            f"{of}: {metric.replace('_', ' ')}", metric=metric, unit="share", baseline=None, value=errors[metric],
            interval=(None, None),
        )
        for metric in ("mean_absolute_error", "p90_absolute_error")
    ]  # fmt: skip


def tables(drawn: Mapping[str, Any]) -> Iterator[Table]:
    """Yields a table of each draw."""
    for name, errors in drawn.items():
        low, high = errors["ci95"]
        table = Table(
            title=f"{name}: {errors['models']} architectures of {errors['kinds']} kinds, by seed {errors['seed']}",
            caption=f"mean {errors['mean_absolute_error']:.1%} (95 %: {low:.1%} to {high:.1%}), "
            f"p90 {errors['p90_absolute_error']:.1%}, worst {errors['worst']:.1%}, "
            f"{errors['in_interval']:.0%} in the 80 % interval; {errors['refused']} types that train were refused",
        )
        for number, title in enumerate(("kind", "model", "batch", "measured", "predicted", "80 %", "error", "twice")):
            table.add_column(title, justify="right" if number > 1 else "left")
        for row in errors["rows"]:
            below, above = row["interval"]
            said = " (said)" if row["guessed"] >= GUESSED else ""
            table.add_row(
                row["kind"], row["model"].removeprefix(f"{name}-"), str(row["batch_size"]),
                f"{1e3 * row['measured']:.1f} ms", f"{1e3 * row['predicted']:.1f} ms",
                f"{1e3 * below:.1f} to {1e3 * above:.1f}",
                f"{row['error']:+.1%}{said}",
                "-" if row["measured_twice"] is None else f"{row['measured_twice']:.1%}",
            )  # fmt: skip
        yield table
