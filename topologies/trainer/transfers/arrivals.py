"""A parameter server that receives every message when it comes, whichever worker sends it.

A worker that has its model early may push again while others still wait for theirs. A server that takes worker after
worker would read that push late, and would answer who asks in the order of ranks.
"""

from __future__ import annotations

import select
from collections.abc import Iterator, Mapping

from topologies.trainer.transfers.frames import Frame, Kind
from topologies.trainer.transfers.rails import AnyChannel
from topologies.trainer.transfers.task import TaskContext


class Arrivals:
    """The connections whose next message is awaited, by their peers' ranks."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._ranks: dict[int, int] = {}

    def expect(self, rank: int, channel: AnyChannel, length: int) -> None:
        """Await the next message of a connection, which has a payload of ``length`` bytes."""
        descriptor = channel.awaits(length)
        self._ranks[descriptor] = rank
        self._poll.register(descriptor, select.POLLIN)

    def __iter__(self) -> Iterator[int]:
        """Yields the rank of each connection once its message has come, until no message is awaited any more.

        The caller receives the message before it goes on, and may then await the next one. A connection that has ended
        is yielded, too.
        """
        while self._ranks:
            for descriptor, _events in self._poll.poll():
                self._poll.unregister(descriptor)
                yield self._ranks.pop(descriptor)


class ArrivalServer:
    """Serves a job's workers, each of which is at a step of its own. ``channels`` are by rank."""

    def __init__(self, context: TaskContext, channels: Mapping[int, AnyChannel]) -> None:
        self._context = context
        self._channels = channels
        self._arrivals = Arrivals()
        self._due: dict[int, Kind] = {}
        self._opened = self._pushed = self._pulled = 0

    def run(self) -> None:
        """Serve the workers to the end of the run. Raises PeerLostError."""
        steps = {Kind.PUSH: self._note_push, Kind.ASK: self._send_model, Kind.GOT: self._note_pull}
        for rank in self._channels:
            self._expect(rank, Kind.PUSH)
        for rank in self._arrivals:
            kind = self._due[rank]
            # Pushes are of the iteration whose barrier opens next, all else of the one whose barrier is open.
            iteration = self._opened + (kind is Kind.PUSH)
            self._channels[rank].expect(Frame(kind, rank, iteration, self._length(kind)))
            steps[kind](rank)

    def _expect(self, rank: int, kind: Kind) -> None:
        self._due[rank] = kind
        self._arrivals.expect(rank, self._channels[rank], self._length(kind))

    def _length(self, kind: Kind) -> int:
        return self._context.job.model_bytes if kind is Kind.PUSH else 0

    def _note_push(self, rank: int) -> None:
        self._context.record.pushed(rank)
        self._pushed += 1
        if self._pushed == len(self._channels):
            self._pushed = 0
            self._open()

    def _open(self) -> None:
        self._opened += 1
        self._context.record.opened()
        for rank, channel in self._channels.items():
            if self._context.job.pulls == "asked":
                channel.send(Frame(Kind.OPEN, 0, self._opened))
                self._expect(rank, Kind.ASK)
            else:
                self._send_model(rank)

    def _send_model(self, rank: int) -> None:
        self._channels[rank].send(Frame(Kind.PULL, 0, self._opened, self._context.job.model_bytes))
        self._expect(rank, Kind.GOT)

    def _note_pull(self, rank: int) -> None:
        self._pulled += 1
        if self._pulled == len(self._channels):
            self._pulled = 0
            self._context.finished(self._opened)
        if self._opened < self._context.iterations:
            self._expect(rank, Kind.PUSH)
