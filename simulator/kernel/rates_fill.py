"""Max-min fairness for bundles on paths of any length: the classic filling.

[known] D. Bertsekas, R. Gallager: Data Networks, 2nd edition, 1992, section 6.5.2: the link with the least share a flow
binds its flows at that share; take them away and go on. Cost O(F log L) for F bundles on L links.
"""

from __future__ import annotations

from simulator.kernel.groups import EMPTY
from simulator.kernel.jit import inner, zero
from simulator.kernel.state import State


@inner
def fill(s: State, bundles: int, links: int) -> None:
    """Max-min over what is ``free`` of ``links`` for the bundles in ``found`` whose ``new`` is negative.

    ``free`` is then what is left.
    """
    hops = s.paths.shape[1]
    for k in range(links):
        link = s.links[k]
        s.link[link].weight = 0.0
        s.link[link].filled = 0
    open_bundles = 0
    for k in range(bundles):
        bundle = s.found[k]
        if s.more[bundle].new >= 0.0:
            continue
        open_bundles += 1
        for h in range(hops):
            link = s.paths[s.bundle[bundle].path, h]
            if link < 0:
                break
            s.link[link].weight += s.bundle[bundle].flows
            s.link[link].filled += 1
    if open_bundles == 0:
        return
    start = 0
    size = zero()
    for k in range(links):
        link = s.links[k]
        s.link[link].start = start
        start += s.link[link].filled
        s.link[link].filled = s.link[link].start
        if s.link[link].weight > 0.0:
            s.link[link].key = s.link[link].free / s.link[link].weight
            s.by_share[size] = link
            size += 1
    for k in range(bundles):
        bundle = s.found[k]
        if s.more[bundle].new >= 0.0:
            continue
        for h in range(hops):
            link = s.paths[s.bundle[bundle].path, h]
            if link < 0:
                break
            s.on_link[s.link[link].filled] = bundle
            s.link[link].filled += 1
    for i in range((size >> 1) - 1, -1, -1):
        sink(s, i, size)
    while open_bundles > 0 and size > 0:
        link = s.by_share[0]
        if s.link[link].weight <= 0.0:
            size -= 1
            s.by_share[0] = s.by_share[size]
            sink(s, zero(), size)
            continue
        share = max(s.link[link].free, 0.0) / s.link[link].weight
        if share > s.link[link].key:
            # Flows that were bound elsewhere left more for the rest than they would have taken.
            s.link[link].key = share
            sink(s, zero(), size)
            if s.by_share[0] != link:
                continue
        for k in range(s.link[link].start, s.link[link].filled):
            bundle = s.on_link[k]
            if s.more[bundle].new >= 0.0:
                continue
            s.more[bundle].new = share
            open_bundles -= 1
            flows = s.bundle[bundle].flows
            for h in range(hops):
                other = s.paths[s.bundle[bundle].path, h]
                if other < 0:
                    break
                s.link[other].free -= flows * share
                s.link[other].weight -= flows
    for k in range(links):
        if s.link[s.links[k]].free <= EMPTY * s.link[s.links[k]].capacity:
            s.link[s.links[k]].free = 0.0


@inner
def sink(s: State, i: int, size: int) -> None:
    """Restore the heap of links by share from place i down."""
    if i >= size:
        return
    link = s.by_share[i]
    key = s.link[link].key
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and s.link[s.by_share[child + 1]].key < s.link[s.by_share[child]].key:
            child += 1
        if s.link[s.by_share[child]].key >= key:
            break
        s.by_share[i] = s.by_share[child]
        i = child
    s.by_share[i] = link
