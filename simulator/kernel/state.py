"""The state of a simulation as a few flat tables, which the compiled loops read and write in place.

Words: a *link* is a port (or a link of a graph, one direction); a *bundle* is n equal flows of one step on one path,
which start and finish together; a *lane* runs one step at a time; a *group* is the set of jobs that share a rank; a
*cell* is one group on one link. Dimensions: L links, P paths, H hops of the longest path, B bundles, N lanes, J jobs,
G groups. A row holds all that is known of its thing, so that one look fetches it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
I8 = NDArray[np.int64]
Rows = NDArray[Any]

WAITING, COMPUTING, SENDING, DONE, GATED, QUEUED = range(6)
"""States of a lane; gated: another lane is not so far yet; queued: another transfer has the turn."""

CHANGED, ANEW = 1, 2
"""Why a cell is looked at again: something came, went, or is left otherwise; or all is to be made anew."""

IDLE, LIMIT, STOP, FULL = range(4)
"""Why ``advance`` came back: nothing runs, the time limit, a job ended or crossed its target, ``rows`` are full."""

NUMBERS = 24
(
    HEAP,
    STAMP,
    TOUCHED,
    READY,
    ENDED,
    CROSSED,
    RANKS,
    FIRST,
    EVENTS,
    SENDERS,
    MOVED,
    ROWS,
    DENSE,
    ROW_COUNT,
    COLUMNS,
    DELTAS,
    MET,
) = range(17)
"""Places in ``num``: how many are in each list, and the like."""
NOW, QUANTUM = 0, 1
"""Places in ``clk``, in seconds."""
NEXT, PREV = 0, 1
"""Columns of ``chain``."""
LEFT, WEIGHT = 0, 1
"""Rows of ``wall``; 2 more for ingress links."""

_f8, _i8, _i4 = np.float64, np.int64, np.int32


def _rows(**fields: Any) -> np.dtype[Any]:
    return np.dtype(list(fields.items()), align=True)


LINK = _rows(
    capacity=_f8,  # bytes/s
    free=_f8,  # what is left in a filling
    fixed=_f8,  # what bundles take whose rates stay
    weight=_f8,  # flows that are not bound yet
    use=_f8,
    key=_f8,
    level=_f8,  # no flow has a higher rate there
    delta=_f8,  # by how much the groups so far take more than before
    stamp=_i8,
    joined=_i8,
    start=_i4,
    filled=_i4,
    has_delta=_i4,
    presents=_i4,  # groups that have bundles on it
)
BUNDLE = _rows(
    left=_f8,  # bytes of one flow at ``since``
    rate=_f8,  # bytes/s of one flow
    since=_f8,
    flows=_f8,  # how many
    path=_i4,
    lane=_i4,
)
MORE = _rows(
    bytes=_f8,  # of one flow; in a relay: of one chunk
    new=_f8,  # a rate in the making; negative: to be found
    stamp=_i8,
    chunks=_i4,  # in a relay: how many it sends one after another, else 0
    sent=_i4,  # in a relay: how many it has sent
    busy=_i4,  # in a relay: whether it sends one
    lag=_i4,  # it passes on the chunk so many before
    source=_i4,  # of this bundle, or -1
    other_source=_i4,  # and of this one, or -1
)
STEP = _rows(
    seconds=_f8,  # computing; negative: a transfer
    first=_i4,  # its bundles
    end=_i4,
    gate=_i4,  # a lane that it waits for, or -1
    gate_step=_i4,  # that lane must have taken this step
    lag=_i4,  # so many iterations before
    turn=_i4,  # or -1
    urgency=_i4,
    relay=_i4,  # whether its bundles pass on each other's chunks
)
LANE = _rows(
    key=_f8,  # when something happens next
    soonest=_f8,  # of its bundles, in the making
    latest=_f8,
    done=_i8,  # iterations
    stamp=_i8,
    flowing=_i4,  # bundles of some rate; 0: none has one
    shut=_i4,  # whether a full link stops it, by MADD
    job=_i4,
    first=_i4,  # its steps
    end=_i4,
    step=_i4,
    state=_i4,
    left=_i4,  # bundles that still send
    place=_i4,  # in the heap, or -1
    touched=_i4,
)
JOB = _rows(
    watch=_f8,  # a metric, turned so that it grows; nan: none
    iterations=_i8,
    slack=_i8,  # staleness; -1: no limit
    done=_i8,  # iterations that every lane has done
    ends=_i8,  # where its own begin in ``ends`` and ``curves``
    first=_i4,  # its lanes
    end=_i4,
    group=_i4,
    reported=_i4,  # whether the crossing of the watched value was reported
    served=_i4,  # whether it may have sent since it was last looked at
    gated=_i4,  # whether its lanes wait for each other
)
GROUP = _rows(
    slowest=_f8,  # seconds in which MADD ends its bundles; infinite: they only have what others leave
    rank=_i4,
    order=_i4,  # row r: the group of rank r
    dirty=_i4,
    first=_i4,  # its jobs in ``senders``
    end=_i4,
    bundles=_i4,  # that send
    cells=_i4,  # links that these are on
    seeds=_i4,  # how many links are in its row of ``seed``
)
CELL = _rows(
    use=_f8,  # bytes/s that the group takes of the link
    free=_f8,  # what those before it leave
    gone=_f8,  # what bundles took that have gone since it was looked at
    came=_i4,  # the first so many bundles in its list are new
    count=_i4,  # its bundles there
    head=_i4,  # the first of them, as bundle * H + hop
    place=_i4,  # in the link's row of ``present``, or -1
    linked=_i4,  # in the group's row of ``linked``
    why=_i4,
)


class State(NamedTuple):
    """All tables of a simulation."""

    num: I8
    clk: F8
    link: Rows  # (L,)
    paths: I4  # (P, H) links, filled with -1
    bundle: Rows  # (B,) in order of lane and step
    more: Rows  # (B,) what is seldom looked at
    chain: I4  # (B * H, 2) doubly linked lists of the bundles of a cell
    active: I4  # (B,) the bundles of a lane that still send, from its step's first place on
    step: Rows
    turns: I4  # the lane that has each turn, or -1
    lane: Rows  # (N,)
    job: Rows  # (J,)
    ends: F8  # when each iteration of each job was done
    curves: F8  # the metric after it, turned so that it grows; nan: none
    group: Rows  # (G,)
    seed: I4  # (G, L) links to be looked at again
    cell: Rows  # (G, L)
    present: I4  # (L, G) groups that have bundles on a link, by rank
    linked: I4  # (G, L) links that a group has bundles on
    deltas: I4  # (L,) links that have a delta
    met: I4  # (N,) lanes of which rates are made
    heap: I4  # (N,) lanes by key
    touched: I4  # (N,) lanes whose next event is to be found again
    ready: I4  # (N,) lanes that go on now
    ended: I4  # (J,)
    crossed: I4  # (J,)
    senders: I4  # (J,) jobs, first served first
    found: I4  # (B,) bundles of a component
    links: I4  # (L,) links of a component
    on_queue: I4  # (L,) links of which all bundles are filled
    by_share: I4  # (L,) a heap of them
    on_link: I4  # (B * H,) bundles of a component by link
    grid: F8  # (n, n) for n hosts of a hose: flows from each source to each target, 0 between uses; or nothing
    wall: F8  # (4, L) what is left of a link, and the weight of its flows, for rows and for columns of the grid
    watched: I4  # (W,) links of which the rates are noted, see kernel.watch
    rate_on: F8  # (W, J) bytes/s of each job there
    rate_since: F8  # (W, J)
    rate_seen: F8  # (J,)
    rows: F8  # (R, 5) place in watched, from, to, job, bytes/s
