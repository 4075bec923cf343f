"""Asynchronous parameter-server training (SSP, ASP, SaSP), and training that overlaps computing and sending.

The schemes, clocks, versions and queues are those of the real trainer (``sasp.core``). A worker sleeps instead of
computing, and the bytes are zeros. A model is one chunk where all is sent after the backward pass, and else ``LAYERS``
chunks of equal bytes. The forward pass takes a third of the compute time. An iteration is finished when the last worker
has all answers to it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from sasp.core.clocks import Clocks
from sasp.core.errors import SaspError
from sasp.core.order import PATIENCE_SECONDS, ChunkQueue
from sasp.core.scheme import Scheme, Versions
from topologies.trainer.transfers.frames import Frame, Kind, PeerLostError
from topologies.trainer.transfers.parts import equal_parts
from topologies.trainer.transfers.rails import AnyChannel
from topologies.trainer.transfers.task import HaltedError, TaskContext

LAYERS = 4
FORWARD_SHARE = 1 / 3
_ITERATION_DONE = -1
"""This number in the queue stands for the report that all answers to an iteration have arrived."""


def layers_of(scheme: Scheme) -> int:
    """Return the number of chunks of a model."""
    return 1 if scheme.sending == "after" else LAYERS


def _queue(scheme: Scheme, *, supersede: bool = False) -> ChunkQueue:
    return ChunkQueue("priority" if scheme.sending == "sasp" else "fifo", supersede=supersede)


class _Shared:
    """The shared state of a task's threads: a condition to wait on, and the first error, which ends all of them."""

    def __init__(self, context: TaskContext) -> None:
        self._context = context
        self.changed = threading.Condition()
        self.fault: Exception | None = None
        self._threads: list[threading.Thread] = []

    def start(self, body: Callable[..., None], *arguments: object) -> None:
        """Run ``body`` in a thread. An exception in it ends the task."""
        thread = threading.Thread(target=self._guarded, args=(body, arguments), daemon=True)
        self._threads.append(thread)
        thread.start()

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds; the caller holds the lock. Raises the first error of a thread."""
        self.changed.wait_for(lambda: condition() or self.fault is not None)
        if self.fault is not None:
            raise self.fault

    def join(self) -> None:
        """Wait until all threads have ended. Raises the first error of a thread."""
        for thread in self._threads:
            thread.join()
        if self.fault is not None:
            raise self.fault

    def _guarded(self, body: Callable[..., None], arguments: tuple[object, ...]) -> None:
        try:
            body(*arguments)
        except (PeerLostError, HaltedError, OSError, SaspError) as error:
            with self.changed:
                first = PeerLostError(str(error)) if isinstance(error, SaspError) else error
                self.fault = self.fault or first
                self.changed.notify_all()
            self._context.sockets.shut()


def serve(context: TaskContext) -> list[AnyChannel]:
    """Run the server, rank 0. Raises PeerLostError, HaltedError, OSError."""
    listener = context.listen()
    context.begin()
    channels = context.welcome(listener, set(range(1, len(context.job.hosts))))
    _Server(context, channels).run()
    return list(channels.values())


class _Server:
    """The server. It has a reader and a sender thread for each worker."""

    def __init__(self, context: TaskContext, channels: dict[int, AnyChannel]) -> None:
        self._context = context
        self._scheme = context.job.scheme
        self._channels = channels
        self._shared = _Shared(context)
        count = len(channels)
        self._sizes = equal_parts(context.job.model_bytes, layers_of(self._scheme))
        self._versions = Versions(count, len(self._sizes), self._scheme)
        self._queues = [_queue(self._scheme, supersede=True) for _ in range(count)]
        self._sending = [False] * count
        self._clocks = [0] * count
        self._acknowledged = [0] * count
        self._finished = 0

    def run(self) -> None:
        for rank, channel in sorted(self._channels.items()):
            if self._scheme.sending == "sasp":
                channel.decides_late()
            self._shared.start(self._read, rank - 1, channel)
            self._shared.start(self._send, rank - 1, channel)
        self._shared.join()

    def _read(self, worker: int, channel: AnyChannel) -> None:
        while self._acknowledged[worker] < self._context.iterations:
            frame = channel.receive_payload(Kind.PUSH, self._sizes)
            with self._shared.changed:
                if frame.kind is Kind.GOT:
                    self._count(worker, frame.iteration)
                else:
                    self._clocks[worker] = max(self._clocks[worker], frame.iteration)
                    for receiver, iteration in self._versions.push(worker, frame.chunk, frame.iteration):
                        self._queues[receiver].put(frame.chunk, iteration)
                self._shared.changed.notify_all()

    def _count(self, worker: int, iteration: int) -> None:
        self._acknowledged[worker] = max(self._acknowledged[worker], min(iteration, self._context.iterations))
        while self._finished < min(self._acknowledged):
            self._finished += 1
            self._context.finished(self._finished)

    def _send(self, worker: int, channel: AnyChannel) -> None:
        queue, end = self._queues[worker], self._context.iterations
        while True:
            with self._shared.changed:
                self._sending[worker] = False
                self._shared.changed.notify_all()
                self._shared.wait(lambda: len(queue) > 0 or self._acknowledged[worker] >= end)
                if not len(queue):
                    return
                if self._scheme.sending == "sasp":
                    self._let_stragglers_go(worker)
                entry = queue.dequeue()
                assert entry is not None
                self._sending[worker] = True
            chunk, iteration = entry
            channel.send(Frame(Kind.PULL, 0, iteration, self._sizes[chunk], chunk=chunk))

    def _let_stragglers_go(self, worker: int) -> None:
        """Wait until no slower worker has chunks to receive, at most for ``PATIENCE_SECONDS``."""

        def is_slowest() -> bool:
            return not any(
                self._clocks[other] < self._clocks[worker] and (len(self._queues[other]) or self._sending[other])
                for other in range(len(self._clocks))
            )

        self._shared.changed.wait_for(is_slowest, PATIENCE_SECONDS)


def work(context: TaskContext) -> list[AnyChannel]:
    """Run a worker. Raises PeerLostError, HaltedError."""
    context.begin()
    channel = context.call(0)
    _Worker(context, channel).run()
    return [channel]


class _Worker:
    """A worker. It trains in the task's own thread, with a sender and a reader thread beside it."""

    def __init__(self, context: TaskContext, channel: AnyChannel) -> None:
        self._context = context
        self._scheme = context.job.scheme
        self._channel = channel
        self._shared = _Shared(context)
        self._sizes = equal_parts(context.job.model_bytes, layers_of(self._scheme))
        self._clocks = Clocks(len(self._sizes), self._scheme.lead)
        self._arrived = [0] * len(self._sizes)
        self._queue = _queue(self._scheme)

    def run(self) -> None:
        if self._scheme.sending == "sasp":
            self._channel.decides_late()
        self._shared.start(self._send)
        self._shared.start(self._read)
        time_now = time.monotonic()
        for _ in range(self._context.iterations):
            time_now = self._iterate(time_now)
        self._shared.join()

    def _iterate(self, begins: float) -> float:
        """Run one iteration from ``begins`` on. Returns when it ended, by the monotonic clock."""
        layers, seconds = range(len(self._sizes)), self._context.job.compute_seconds / len(self._sizes)
        whole = self._scheme.sending != "sasp"
        now = begins
        for layer in layers:
            now = max(now, self._wait(layers if whole and layer == 0 else (layer,), now))
            now += seconds * FORWARD_SHARE
        for layer in reversed(layers):
            now += seconds * (1 - FORWARD_SHARE)
            self._context.rest(now)
            with self._shared.changed:
                self._queue.put(layer, self._clocks.computed + 1)
                self._shared.changed.notify_all()
        self._clocks.end_iteration()
        return now

    def _wait(self, layers: Sequence[int], now: float) -> float:
        """Wait until layers may compute. Returns when that was; it does not sleep for chunks that have arrived."""

        def fresh() -> bool:
            return all(self._arrived[layer] >= self._clocks.due(layer) for layer in layers)

        with self._shared.changed:
            waited = not fresh()
        if waited:
            self._context.rest(now)
        with self._shared.changed:
            waited = not fresh()
            self._shared.wait(fresh)
            for layer in layers:
                self._clocks.synchronise(layer, min(self._arrived[layer], self._clocks.computed))
        return time.monotonic() if waited else now

    def _send(self) -> None:
        """Send chunks in the queue's order, and reports of complete iterations, until the last such report."""
        rank = self._context.rank
        while True:
            with self._shared.changed:
                self._shared.wait(lambda: len(self._queue) > 0)
                entry = self._queue.dequeue()
            assert entry is not None
            chunk, iteration = entry
            if chunk == _ITERATION_DONE:
                self._channel.send(Frame(Kind.GOT, rank, iteration))
                if iteration >= self._context.iterations:
                    return
                continue
            self._channel.send(Frame(Kind.PUSH, rank, iteration, self._sizes[chunk], chunk=chunk))

    def _read(self) -> None:
        complete = 0
        while complete < self._context.iterations:
            frame = self._channel.receive_payload(Kind.PULL, self._sizes)
            with self._shared.changed:
                self._arrived[frame.chunk] = max(self._arrived[frame.chunk], frame.iteration)
                if min(self._arrived) > complete:
                    complete = min(self._arrived)
                    self._queue.put(_ITERATION_DONE, complete)
                self._shared.changed.notify_all()
