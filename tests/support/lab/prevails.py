"""Whether one stream goes before another, measured on a link that both want whole."""

from __future__ import annotations

from collections.abc import Sequence

from topologies.emulation import Emulation
from topologies.lab.queue_proof import Stream, measure

_ROUNDS = 3


def prevails(emulation: Emulation, streams: Sequence[Stream], *, seconds: float, ratio: float = 20.0) -> bool:
    """Returns whether the first of two streams carries ``ratio`` times as much as the second, which still moves.

    Other work of the machine can hold the first stream up for a moment, and the second one then takes the link. It
    cannot hold the second one back for the first. So the best of three rounds counts.
    """
    for _ in range(_ROUNDS):
        first, second = measure(emulation, streams, seconds=seconds)
        if first > ratio * second > 0:
            return True
    return False
