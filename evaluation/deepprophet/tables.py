"""The tables of the claim ``deepprophet``, from the fields of its summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from evaluation.deepprophet import unseen
from evaluation.deepprophet.arms import COSTED, DEFAULT_WAY, KINDS, WAYS
from evaluation.deepprophet.plans import errors as plan_errors

_WAYS = {
    "default": "table, some measured, roofline (the default)",
    "table": "table, else roofline (--measure 0)",
    "measured": "table, all else measured (--measure)",
    "roofline": "roofline only",
}

_OPERATORS = {"table": "table, what is in it", "measured": "micro-benchmarks", "roofline": "roofline only"}


def all_tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """Yields the tables: errors by kind and way, by family, by link rate and by operator, and prediction times."""
    table = Table(title=f"DeepProphet: error of the iteration time, {fields['models']} models (95 %: over models)")
    for number, name in enumerate(
        ("", "costs by", "cases", "mean", "95 %", "p90", "worst", "in its interval", "twice")
    ):
        table.add_column(name, justify="right" if number > 1 else "left")
    for kind, errors in fields["kinds"].items():
        for way, error in errors["ways"].items():
            low, high = error["ci95"]
            table.add_row(
                kind if way == WAYS[0] else "", _WAYS[way], str(errors["cases"]), f"{error['mean_absolute_error']:.1%}",
                f"{low:.1%} to {high:.1%}", f"{error['p90']:.1%}", f"{error['worst']:.1%}",
                f"{error['in_interval']:.0%}",
                "-" if errors["measured_twice"] is None else f"{errors['measured_twice']:.1%}",
            )  # fmt: skip
    yield table
    yield from unseen.tables(fields["drawn"])
    yield from plan_errors.tables(fields["plans"])
    families = Table(title=f"by family, costs by {_WAYS[DEFAULT_WAY]}")
    for number, name in enumerate(("", *KINDS)):
        families.add_column(name, justify="right" if number else "left")
    for family, kinds in fields["families"].items():
        cells = [kinds[kind]["ways"][DEFAULT_WAY]["mean_absolute_error"] if kind in kinds else None for kind in KINDS]
        families.add_row(family, *("-" if cell is None else f"{cell:.1%}" for cell in cells))
    yield families
    wired = Table(title="by link rate: how much of an iteration its bytes take at the least")
    for number, name in enumerate(("", "rate", "cases", "error", "of it wire", "error of the rest")):
        wired.add_column(name, justify="right" if number > 1 else "left")
    for kind, rates in fields["rates"].items():
        for rate, error in rates.items():
            rest = error["error_of_the_rest"]
            wired.add_row(
                kind, rate, str(error["cases"]), f"{error['mean_absolute_error']:.1%}", f"{error['wire_share']:.0%}",
                "-" if rest is None else f"{rest:.1%}",
            )  # fmt: skip
    yield wired
    durations = Table(
        title="seconds of trainyard predict, the longest of its batch sizes", caption=f"GPU: {fields['gpu']}"
    )
    for number, name in enumerate(("model", "takes", "limit")):
        durations.add_column(name, justify="right" if number else "left")
    for model, seconds in fields["predict_seconds"].items():
        durations.add_row(model, f"{seconds:.1f}", f"{fields['predict_limit_seconds']:g}")
    yield durations
    single = Table(title="single operators inside an iteration")
    for number, name in enumerate(("costs by", "error", "of the time")):
        single.add_column(name, justify="right" if number else "left")
    for way in COSTED:
        error = fields["operators"][way]
        single.add_row(
            _OPERATORS[way],
            "-" if error["error"] is None else f"{error['error']:.1%}",
            f"{error['share_of_time']:.0%}",
        )
    twice = fields["operators"]["measured_twice"]
    single.add_row("(alone, measured twice)", "-" if twice is None else f"{twice:.1%}", "")
    yield single
