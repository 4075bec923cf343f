"""Parameter-server training, bulk synchronous: all push, then all pull.

In each iteration every worker computes, pushes ``model_bytes`` to the server, waits for as many bytes back, and reports
that it has them. The server answers no worker before it has every push. The iteration is finished when the last worker
has its pull. The end of the server's sending would be too early, because the sockets still hold data then.

The server sends the model as soon as it has every push. Where pulls are ``asked`` for, it first says that the barrier
is open, and sends the model to each worker that then asks for it, as TensorFlow 1 does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from topologies.trainer.transfers.arrivals import ArrivalServer
from topologies.trainer.transfers.frames import Frame, Kind, PeerLostError
from topologies.trainer.transfers.rails import AnyChannel
from topologies.trainer.transfers.task import HaltedError, TaskContext


def serve(context: TaskContext) -> list[AnyChannel]:
    """Run the server, rank 0. Raises PeerLostError, HaltedError, OSError.

    Where the kernel holds whole messages, one thread serves all workers: in turn, or each when its message comes, where
    that is recorded or workers ask. Else each worker has a thread.
    """
    workers = set(range(1, len(context.job.hosts)))
    listener = context.listen()
    context.begin()
    channels = context.welcome(listener, workers)
    for channel in channels.values():
        channel.gathers(context.job.model_bytes)
    if not (context.kernel_buffers and all(channel.holds(context.job.model_bytes) for channel in channels.values())):
        _serve_at_once(context, channels)
    elif context.record.wants_arrivals or context.job.pulls == "asked":
        ArrivalServer(context, channels).run()
    else:
        _serve_in_turn(context, channels)
    return list(channels.values())


def _serve_in_turn(context: TaskContext, channels: Mapping[int, AnyChannel]) -> None:
    size = context.job.model_bytes
    for iteration in range(1, context.iterations + 1):
        for rank, channel in channels.items():
            channel.expect(Frame(Kind.PUSH, rank, iteration, size))
        for channel in channels.values():
            channel.send(Frame(Kind.PULL, 0, iteration, size))
        for rank, channel in channels.items():
            channel.expect(Frame(Kind.GOT, rank, iteration))
        context.finished(iteration)


def _serve_at_once(context: TaskContext, channels: Mapping[int, AnyChannel]) -> None:
    round_ = _Round(context, len(channels))
    threads = [
        threading.Thread(target=round_.attend, args=(channel, rank), name=f"{context.job.id}/{rank}", daemon=True)
        for rank, channel in sorted(channels.items())
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if round_.error is not None:
        raise round_.error


class _Round:
    """The shared state of the server's threads: the barrier, the number of pulls that arrived, and the first error."""

    def __init__(self, context: TaskContext, workers: int) -> None:
        self._context = context
        self._workers = workers
        self._all_pushed = threading.Barrier(workers, action=context.record.opened)
        self._lock = threading.Lock()
        self._pulled = 0
        self.error: Exception | None = None

    def attend(self, channel: AnyChannel, rank: int) -> None:
        """Serve one worker to the end of the run. An error ends the job, and ``error`` keeps it."""
        size = self._context.job.model_bytes
        try:
            for iteration in range(1, self._context.iterations + 1):
                channel.expect(Frame(Kind.PUSH, rank, iteration, size))
                self._context.record.pushed(rank)
                self._all_pushed.wait()
                if self._context.job.pulls == "asked":
                    channel.send(Frame(Kind.OPEN, 0, iteration))
                    channel.expect(Frame(Kind.ASK, rank, iteration))
                channel.send(Frame(Kind.PULL, 0, iteration, size))
                channel.expect(Frame(Kind.GOT, rank, iteration))
                self._count(iteration)
        except (PeerLostError, HaltedError, OSError, threading.BrokenBarrierError) as error:
            with self._lock:
                # A broken barrier is the result of another thread's error, so that error is the one to report.
                if self.error is None or isinstance(self.error, threading.BrokenBarrierError):
                    self.error = error
            self._all_pushed.abort()
            self._context.sockets.shut()

    def _count(self, iteration: int) -> None:
        with self._lock:
            self._pulled += 1
            if self._pulled == self._workers:
                self._pulled = 0
                self._context.finished(iteration)


def work(context: TaskContext) -> list[AnyChannel]:
    """Run a worker. Raises PeerLostError, HaltedError."""
    context.begin()
    server, size = context.call(0), context.job.model_bytes
    server.gathers(size)
    server.holds(size)
    ready = time.monotonic()
    context.record.ready(ready)
    for iteration in range(1, context.iterations + 1):
        context.compute(ready)
        context.record.entered()
        server.send(Frame(Kind.PUSH, context.rank, iteration, size))
        if context.job.pulls == "asked":
            server.expect(Frame(Kind.OPEN, 0, iteration))
            server.send(Frame(Kind.ASK, context.rank, iteration))
        server.expect(Frame(Kind.PULL, 0, iteration, size))
        ready = time.monotonic()
        context.record.ready(ready)
        server.send(Frame(Kind.GOT, context.rank, iteration))
    return [server]
