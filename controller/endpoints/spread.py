"""Spreads what one server sends to another over their interfaces.

Two servers with as many interfaces send from the first to the first, from the second to the second and so on, as in
networks that have a switch for each such rail. Else each interface takes part by its rate, and they are paired in their
order. So there are fewer pairs than interfaces of both servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from controller.endpoints.servers import Servers
from controller.model import Demand, Host, server_of


class Share(NamedTuple):
    """The share (0 to 1) of what is sent that runs between two interfaces."""

    src: str
    dst: str
    share: float


def shares(servers: Servers, src: str, dst: str) -> list[Share]:
    """Returns how traffic runs between two names, each a server or an interface. The shares add up to 1.

    A name that is not known stays as it is.
    """
    sources, targets = servers.of(src), servers.of(dst)
    if len(sources) <= 1 and len(targets) <= 1:
        return [Share(sources[0].name if sources else src, targets[0].name if targets else dst, 1.0)]
    if not sources or not targets:
        return [
            Share(a, b, 1.0 / max(len(sources), len(targets))) for a, b in _with_unknown(sources, targets, src, dst)
        ]
    rails = _rails(servers, sources, targets)
    if rails:
        rates = [min(a.egress_bps, b.ingress_bps) for a, b in rails]
        return [Share(a.name, b.name, rate / sum(rates)) for (a, b), rate in zip(rails, rates, strict=True)]
    return list(_by_rate(sources, targets))


def spread(servers: Servers, demand: Sequence[Demand]) -> tuple[Demand, ...]:
    """Returns demand between servers as demand between their interfaces."""
    known: dict[tuple[str, str], list[Share]] = {}
    parts: list[Demand] = []
    for src, dst, amount in demand:
        if (src, dst) not in known:
            known[src, dst] = shares(servers, src, dst)
        parts += [Demand(a, b, amount * share) for a, b, share in known[src, dst]]
    return tuple(parts)


def _with_unknown(sources: Sequence[Host], targets: Sequence[Host], src: str, dst: str) -> list[tuple[str, str]]:
    return [(host.name, dst) for host in sources] or [(src, host.name) for host in targets]


def _rails(servers: Servers, sources: Sequence[Host], targets: Sequence[Host]) -> list[tuple[Host, Host]]:
    """Returns the pairs of interfaces with the same number; empty where the two servers do not have as many."""
    ends = [servers[server_of(hosts[0].name)] for hosts in (sources, targets)]
    if len(ends[0]) != len(ends[1]):
        return []
    return [(a, b) for a, b in zip(*ends, strict=True) if a in sources and b in targets]


def _by_rate(sources: Sequence[Host], targets: Sequence[Host]) -> Iterator[Share]:
    """Yields the overlaps of the interfaces where each takes a part of a line from 0 to 1, as long as its rate."""
    out, into = _ends([host.egress_bps for host in sources]), _ends([host.ingress_bps for host in targets])
    i = j = 0
    at = 0.0
    while i < len(out) and j < len(into):
        until = min(out[i], into[j])
        if until > at:
            yield Share(sources[i].name, targets[j].name, until - at)
            at = until
        # Where both end at once, both go on: a rest would be nothing but rounding.
        i, j = i + (out[i] <= until), j + (into[j] <= until)


def _ends(rates: Sequence[float]) -> list[float]:
    total = sum(rates)
    ends = [rate / total for rate in accumulate(rates)]
    ends[-1] = 1.0
    return ends
