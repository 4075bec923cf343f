"""The errors on plans beyond a copy a worker: a row for each case, and a mean over models for each plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from rich.table import Table

from evaluation import summary
from evaluation.deepprophet.plans.groups import PlanGroup
from evaluation.deepprophet.plans.measuring import PlanResult

CROWDED = ", more ranks than cores"


def add_up(results: Sequence[tuple[PlanGroup, PlanResult]]) -> dict[str, Any]:
    """Returns ``rows``, one for each case, and ``plans``, the errors of each plan over its models.

    A plan whose ranks share cores counts apart from the same plan with a core for each rank.
    """
    before = {group.case.name: result for group, result in results if group.is_first}
    rows = [_row(group, result, before.get(group.case.name)) for group, result in results if not group.is_first]
    by_plan = {
        plan: [row for row in rows if row["plan"] == plan] for plan in dict.fromkeys(row["plan"] for row in rows)
    }
    return {"plans": {plan: _errors(own) for plan, own in by_plan.items()}, "rows": rows}


def _row(group: PlanGroup, result: PlanResult, first: PlanResult | None) -> dict[str, Any]:
    case, predicted = group.case, result.predicted
    assert predicted is not None
    runs = [result.seconds] if first is None else [first.seconds, result.seconds]
    measured = fmean(runs)
    return {
        "plan": case.plan + (CROWDED if case.ranks > result.cores else ""),
        "model": case.model,
        "ranks": case.ranks,
        "rate_bps": case.rate_bps,
        "batch_size": case.batch_size,
        "runs": runs,
        "measured": measured,
        "predicted": asdict(predicted),
        "error": predicted.seconds / measured - 1.0,
        "is_inside": predicted.low <= measured <= predicted.high,
        "measured_twice": None if first is None else abs(runs[0] - runs[1]) / measured,
        "sent": result.sent,
    }


def _errors(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "models": len(rows),
        "mean_absolute_error": fmean(abs(row["error"]) for row in rows),
        "worst": max(abs(row["error"]) for row in rows),
        "in_interval": fmean(row["is_inside"] for row in rows),
    }


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the figure of each plan."""
    return [
        summary.claim(
            f"DeepProphet on plans beyond a copy a worker: {plan}, {errors['models']} models",
            metric="mean_absolute_error", unit="share", baseline=None, value=errors["mean_absolute_error"],
            interval=(None, None),
        )
        for plan, errors in fields["plans"].items()
    ]  # fmt: skip


def tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """Yields the tables of the cases' times, of their bytes, and of the plans."""
    rows = fields["rows"]
    if not rows:
        return
    times = _table("plans (ms)", ("plan", "model", "ranks", "rate", "measured", "predicted", "80 %", "error", "twice"))
    for row in rows:
        predicted, twice, rate = row["predicted"], row["measured_twice"], row["rate_bps"]
        times.add_row(
            row["plan"], row["model"], str(row["ranks"]), "-" if rate is None else f"{rate / 1e6:.0f} Mbit/s",
            f"{1e3 * row['measured']:.1f}", f"{1e3 * predicted['seconds']:.1f}",
            f"{1e3 * predicted['low']:.1f} to {1e3 * predicted['high']:.1f}", f"{row['error']:+.1%}",
            "-" if twice is None else f"{twice:.1%}",
        )  # fmt: skip
    yield times
    sent = _table("MB that all ranks send in an iteration, with headers", ("plan", "model", "sent", "predicted"))
    for row in rows:
        if row["ranks"] > 1:
            sent.add_row(
                row["plan"], row["model"], f"{row['sent'] / 1e6:.2f}", f"{row['predicted']['bytes'] / 1e6:.2f}"
            )
    yield sent
    by_plan = _table("plans, over their models", ("plan", "models", "mean", "worst", "in its interval"))
    for plan, errors in fields["plans"].items():
        by_plan.add_row(
            plan, str(errors["models"]), f"{errors['mean_absolute_error']:.1%}", f"{errors['worst']:.1%}",
            f"{errors['in_interval']:.0%}",
        )  # fmt: skip
    yield by_plan


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title)
    for name in columns:
        table.add_column(name, justify="left" if name in ("plan", "model") else "right")
    return table
