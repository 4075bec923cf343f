"""The links by how full they are, and what fills them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from controller.cli.top import words
from controller.cli.top.columns import Column, Line, Span, table
from controller.quantities import percent
from controller.wire import LinkEnd, Network

_HIGH, _FULL = 0.7, 0.95


class PortUse(NamedTuple):
    """What crosses a link in one direction, in bit/s, in all and by class (other: all other traffic), and its rate.

    ``by_class`` is empty where it is counted in all classes together.
    """

    name: str
    load_bps: float
    by_class: Mapping[str, float]
    rate_bps: float | None

    @property
    def share(self) -> float:
        """The share of its rate that is used; 0 where the rate is not known."""
        return self.load_bps / self.rate_bps if self.rate_bps else 0.0


def busiest(network: Network | None) -> list[PortUse]:
    """Returns the ports whose traffic is counted, the fullest first."""
    if network is None:
        return []
    uses = []
    for link in network.links:
        for source, target, load, total, rate in (
            (link.a, link.b, link.a_to_b_load_bps, link.a_to_b_total_bps, link.a_to_b_bps),
            (link.b, link.a, link.b_to_a_load_bps, link.b_to_a_total_bps, link.b_to_a_bps),
        ):
            counted = sum(load.values()) if load is not None else total
            if counted is not None:
                uses.append(PortUse(f"{_end(source)} > {_end(target)}", counted, load or {}, rate))
    return sorted(uses, key=lambda use: (-use.share, -use.load_bps, use.name))


def ports_table(uses: Sequence[PortUse], width: int) -> list[Line]:
    """Returns the table of the ports; nothing without any."""
    if not uses:
        return []
    columns = [
        Column("port", [(use.name, "") for use in uses], 0, 12),
        Column("use", [_share(use) for use in uses], 1, 5, is_right=True),
        Column("load", [(words.bit_rate(use.load_bps), "") for use in uses], 2, 11, is_right=True),
        Column("by class", [(_classes(use), "") for use in uses], 3, 10),
    ]
    return table(columns, width)


def _end(end: LinkEnd) -> str:
    return end.node if end.port is None else f"{end.node.lstrip('0') or '0'}:{end.port}"


def _share(use: PortUse) -> Span:
    if not use.rate_bps:
        return "-", ""
    return percent(use.share), "bold red" if use.share >= _FULL else "yellow" if use.share >= _HIGH else ""


def _classes(use: PortUse) -> str:
    total = use.load_bps
    if total <= 0:
        return "-"
    if not use.by_class:
        return "not counted by class"
    parts = ((name, load) for name, load in use.by_class.items() if load >= 0.005 * total)
    return ", ".join(f"{name}: {percent(load / total)}" for name, load in parts)
