"""Parameter-server training whose workers may run apart, or overlap computing and sending: SSP, ASP, SaSP.

The rules are those of the real trainer (``sasp``): its schemes, clocks, books and queues; only the
computing is slept through and the bytes are zeros. A model is one chunk where all is sent after the backward pass,
else ``LAYERS`` of equal bytes. A third of the computing is the forward pass. An iteration is finished when the last
worker has all answers to it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from sasp.core.clocks import Clocks
from sasp.core.errors import SaspError
from sasp.core.order import PATIENCE_SECONDS, ChunkQueue
from sasp.core.scheme import Scheme, Versions
from topologies.trainer.transfers.frames import Channel, Frame, Kind, PeerLostError
from topologies.trainer.transfers.ring import chunk_bytes
from topologies.trainer.transfers.task import HaltedError, Seat

LAYERS = 4
FORWARD_SHARE = 1 / 3
_HAS_ALL = -1
"""In the place of a chunk: say that an iteration's answers are all here. It goes before the iteration's chunks."""


def layers_of(scheme: Scheme) -> int:
    """Into how many chunks the model is cut."""
    return 1 if scheme.sending == "after" else LAYERS


def _queue(scheme: Scheme, *, supersede: bool = False) -> ChunkQueue:
    return ChunkQueue("priority" if scheme.sending == "sasp" else "fifo", supersede=supersede)


class _Shared:
    """What the threads of one task share: a lock to wait on, and the first fault, which ends them all."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self.changed = threading.Condition()
        self.fault: Exception | None = None
        self._threads: list[threading.Thread] = []

    def start(self, body: Callable[..., None], *arguments: object) -> None:
        """Run ``body`` in a thread; what it raises ends the task."""
        thread = threading.Thread(target=self._guarded, args=(body, arguments), daemon=True)
        self._threads.append(thread)
        thread.start()

    def wait(self, condition: Callable[[], bool]) -> None:
        """Until it holds; the lock is held. Raises what went wrong in a thread."""
        self.changed.wait_for(lambda: condition() or self.fault is not None)
        if self.fault is not None:
            raise self.fault

    def join(self) -> None:
        """Until all threads have ended. Raises what went wrong in one."""
        for thread in self._threads:
            thread.join()
        if self.fault is not None:
            raise self.fault

    def _guarded(self, body: Callable[..., None], arguments: tuple[object, ...]) -> None:
        try:
            body(*arguments)
        except (PeerLostError, HaltedError, OSError, SaspError) as error:
            with self.changed:
                told = PeerLostError(str(error)) if isinstance(error, SaspError) else error
                self.fault = self.fault or told
                self.changed.notify_all()
            self._seat.sockets.shut()


def serve(seat: Seat) -> list[Channel]:
    """The server's part, rank 0. Raises PeerLostError, HaltedError, OSError."""
    listener = seat.listen()
    seat.begin()
    channels = seat.welcome(listener, set(range(1, len(seat.job.hosts))))
    _Server(seat, channels).run()
    return list(channels.values())


class _Server:
    """A reader and a sender thread a worker."""

    def __init__(self, seat: Seat, channels: dict[int, Channel]) -> None:
        self._seat = seat
        self._scheme = seat.job.scheme
        self._channels = channels
        self._shared = _Shared(seat)
        count = len(channels)
        self._sizes = chunk_bytes(seat.job.model_bytes, layers_of(self._scheme))
        self._versions = Versions(count, len(self._sizes), self._scheme)
        self._queues = [_queue(self._scheme, supersede=True) for _ in range(count)]
        self._sending = [False] * count
        self._clocks = [0] * count
        self._got = [0] * count
        self._finished = 0

    def run(self) -> None:
        for rank, channel in sorted(self._channels.items()):
            if self._scheme.sending == "sasp":
                channel.decides_late()
            self._shared.start(self._read, rank - 1, channel)
            self._shared.start(self._send, rank - 1, channel)
        self._shared.join()

    def _read(self, worker: int, channel: Channel) -> None:
        while self._got[worker] < self._seat.iterations:
            frame = channel.take(Kind.PUSH, self._sizes)
            with self._shared.changed:
                if frame.kind is Kind.GOT:
                    self._count(worker, frame.iteration)
                else:
                    self._clocks[worker] = max(self._clocks[worker], frame.iteration)
                    for one, iteration in self._versions.push(worker, frame.chunk, frame.iteration):
                        self._queues[one].put(frame.chunk, iteration)
                self._shared.changed.notify_all()

    def _count(self, worker: int, iteration: int) -> None:
        self._got[worker] = max(self._got[worker], min(iteration, self._seat.iterations))
        while self._finished < min(self._got):
            self._finished += 1
            self._seat.finished(self._finished)

    def _send(self, worker: int, channel: Channel) -> None:
        queue, end = self._queues[worker], self._seat.iterations
        while True:
            with self._shared.changed:
                self._sending[worker] = False
                self._shared.changed.notify_all()
                self._shared.wait(lambda: len(queue) > 0 or self._got[worker] >= end)
                if not len(queue):
                    return
                if self._scheme.sending == "sasp":
                    self._let_stragglers_go(worker)
                taken = queue.dequeue()
                assert taken is not None
                self._sending[worker] = True
            chunk, iteration = taken
            channel.send(Frame(Kind.PULL, 0, iteration, self._sizes[chunk], chunk=chunk))

    def _let_stragglers_go(self, worker: int) -> None:
        def alone() -> bool:
            return not any(
                self._clocks[other] < self._clocks[worker] and (len(self._queues[other]) or self._sending[other])
                for other in range(len(self._clocks))
            )

        self._shared.changed.wait_for(alone, PATIENCE_SECONDS)


def work(seat: Seat) -> list[Channel]:
    """A worker's part. Raises PeerLostError, HaltedError."""
    seat.begin()
    channel = seat.call(0)
    _Worker(seat, channel).run()
    return [channel]


class _Worker:
    """The training in the task's own thread; a sender and a reader beside it."""

    def __init__(self, seat: Seat, channel: Channel) -> None:
        self._seat = seat
        self._scheme = seat.job.scheme
        self._channel = channel
        self._shared = _Shared(seat)
        self._sizes = chunk_bytes(seat.job.model_bytes, layers_of(self._scheme))
        self._clocks = Clocks(len(self._sizes), self._scheme.lead)
        self._arrived = [0] * len(self._sizes)
        self._queue = _queue(self._scheme)

    def run(self) -> None:
        if self._scheme.sending == "sasp":
            self._channel.decides_late()
        self._shared.start(self._send)
        self._shared.start(self._read)
        time_now = time.monotonic()
        for _ in range(self._seat.iterations):
            time_now = self._iterate(time_now)
        self._shared.join()

    def _iterate(self, begins: float) -> float:
        """One iteration from ``begins`` (monotonic) on; when it ended."""
        layers, seconds = range(len(self._sizes)), self._seat.job.compute_seconds / len(self._sizes)
        whole = self._scheme.sending != "sasp"
        now = begins
        for layer in layers:
            now = max(now, self._wait(layers if whole and layer == 0 else (layer,), now))
            now += seconds * FORWARD_SHARE
        for layer in reversed(layers):
            now += seconds * (1 - FORWARD_SHARE)
            self._seat.rest(now)
            with self._shared.changed:
                self._queue.put(layer, self._clocks.computed + 1)
                self._shared.changed.notify_all()
        self._clocks.end_iteration()
        return now

    def _wait(self, layers: Sequence[int], now: float) -> float:
        """Until layers may compute; when that was. What has come already costs no sleep."""
        due = self._clocks.due

        def fresh() -> bool:
            return all(self._arrived[layer] >= due for layer in layers)

        with self._shared.changed:
            waited = not fresh()
        if waited:
            self._seat.rest(now)
        with self._shared.changed:
            waited = not fresh()
            self._shared.wait(fresh)
            for layer in layers:
                self._clocks.synchronise(layer, min(self._arrived[layer], self._clocks.computed))
        return time.monotonic() if waited else now

    def _send(self) -> None:
        """Chunks by turn, and word of what has come, until the last such word."""
        rank = self._seat.rank
        while True:
            with self._shared.changed:
                self._shared.wait(lambda: len(self._queue) > 0)
                taken = self._queue.dequeue()
            assert taken is not None
            chunk, iteration = taken
            if chunk == _HAS_ALL:
                self._channel.send(Frame(Kind.GOT, rank, iteration))
                if iteration >= self._seat.iterations:
                    return
                continue
            self._channel.send(Frame(Kind.PUSH, rank, iteration, self._sizes[chunk], chunk=chunk))

    def _read(self) -> None:
        told = 0
        while told < self._seat.iterations:
            frame = self._channel.take(Kind.PULL, self._sizes)
            with self._shared.changed:
                self._arrived[frame.chunk] = max(self._arrived[frame.chunk], frame.iteration)
                if min(self._arrived) > told:
                    told = min(self._arrived)
                    self._queue.put(_HAS_ALL, told)
                self._shared.changed.notify_all()
