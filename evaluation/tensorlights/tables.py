"""The tables of the claim ``tensorlights``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from evaluation.tensorlights import causes
from evaluation.tensorlights.groups import EACH, WHY
from evaluation.tensorlights.workload import placement_name

_TIMES = ("", "seeds", "JCT (s)", "saved", "95 %", "fluid", "computing", "box busy", "links out", "variance")
_WAITS = (
    *("", "wait (s)", "saved", "variance saved", "at server (s)", "saved", "variance saved"),
    *("by models (s)", "by late workers (s)", "fan-out (s)", "order", "timeouts (spurious)"),
)
_STREAMS = ("", "JCT (s)", "saved", "wait (s)", "variance (s2)", "at server (s)")


def tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """Yields tables for each placement and variant: completion times, waits, what is simulated, and bands."""
    for figures in fields["placements"].values():
        yield from _of(placement_name(tuple(figures["servers"])), figures)
    for name, figures in fields["why"].items():
        yield from _of(f"{placement_name(tuple(figures['servers']))}; {WHY[name]}", figures)


def _of(title: str, figures: Mapping[str, Any]) -> Iterator[Table]:
    arms, simulated = figures["arms"], figures["fluid"] or {}
    bound, banded = figures["bound"], _percent(simulated.get(EACH.name))
    times = f"no order saves more than {bound['reduction']:.0%}; fluid, a band each: {banded}"
    rows = [_times(name, values, simulated.get(name)) for name, values in arms.items()]
    yield _table(f"{title} ({times})", _TIMES, rows)
    yield _table(f"{title}: waits at barriers", _WAITS, [_waits(name, values) for name, values in arms.items()])
    if (streams := figures["streams"]) is not None:
        named = f"{title}: simulated, a stream for each connection"
        yield _table(named, _STREAMS, [_stream(name, values) for name, values in streams.items()])
    numbers = sorted({band["band"] for values in arms.values() for band in values["bands"]})
    if numbers:
        columns = ("", *(f"band {number}" for number in numbers))
        bands = f"{title}: wait / fan-out (s) of the jobs in each band of TLs-One"
        yield _table(bands, columns, [_bands(name, values) for name, values in arms.items()])


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(title=title)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    return table


def _times(name: str, values: Mapping[str, Any], simulated: Mapping[str, float] | None) -> Sequence[str]:
    jct, links, computing = values["jct"], values["links"], values["computing_share"]
    low, high = jct["reduction_ci95"]
    return (
        name,
        str(len(values["seeds"])),
        f"{jct['mean']:.1f}",
        _share(jct),
        f"{low:.1%} to {high:.1%}",
        _percent(simulated),
        "-" if computing is None else f"{computing:.0%}",
        f"{values['cpu_busy_share']:.0%}",
        "-" if links is None else f"{links['servers_egress_share']:.0%}",
        "-" if links is None else f"{links['servers_egress_variance']:.3f}",
    )


def _waits(name: str, values: Mapping[str, Any]) -> Sequence[str]:
    wait, at_server, tcp = values["barrier_wait"], values["server_wait"], values["tcp"]
    return (
        name,
        _seconds(wait),
        _share(wait),
        _share(values["barrier_variance"]),
        _seconds(at_server),
        _share(at_server),
        _share(values["server_variance"]),
        *causes.as_text(values["causes"]),
        "-" if tcp is None else f"{tcp['timeouts']:.0f} ({tcp['spurious_timeouts']:.0f})",
    )


def _stream(name: str, values: Mapping[str, float]) -> Sequence[str]:
    waits = (values[field] for field in ("wait", "variance", "server_wait"))
    return (name, f"{values['jct']:.1f}", _percent(values), *(f"{wait:.3f}" for wait in waits))


def _bands(name: str, values: Mapping[str, Any]) -> Sequence[str]:
    pairs = ((band["barrier_wait"], band["fan_out_seconds"]) for band in values["bands"])
    return (
        name,
        *("-" if wait is None or fan_out is None else f"{wait:.2f} / {fan_out:.2f}" for wait, fan_out in pairs),
    )


def _percent(values: Mapping[str, float] | None) -> str:
    return "-" if values is None else f"{values['reduction']:.0%}"


def _seconds(values: Mapping[str, Any] | None) -> str:
    return "-" if values is None else f"{values['mean']:.2f}"


def _share(values: Mapping[str, Any] | None) -> str:
    return "-" if values is None or values["reduction"] is None else f"{values['reduction']:.1%}"
