"""Parameter-server training, bulk synchronous: all push, then all pull.

An iteration: every worker computes, pushes ``model_bytes`` to the server, waits for as many back, and says that it
has them. The server answers nobody before it has every push. The iteration is finished when the last worker has
its pull: the server's own end of sending would be too early by what the sockets still hold.
"""

from __future__ import annotations

import threading
import time

from topologies.trainer.frames import Channel, Frame, Kind, PeerLostError
from topologies.trainer.seats import HaltedError, Seat


def serve(seat: Seat) -> list[Channel]:
    """The server's part, rank 0: one thread a worker. Raises PeerLostError, HaltedError, OSError."""
    workers = set(range(1, len(seat.job.hosts)))
    channels = seat.welcome(seat.listen(), workers)
    round_ = _Round(seat, len(workers))
    threads = [
        threading.Thread(target=round_.attend, args=(channel, rank), name=f"{seat.job.id}/{rank}", daemon=True)
        for rank, channel in sorted(channels.items())
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if round_.error is not None:
        raise round_.error
    return list(channels.values())


class _Round:
    """What the server's threads share: the barrier, the count of pulls that arrived, the first error."""

    def __init__(self, seat: Seat, workers: int) -> None:
        self._seat = seat
        self._workers = workers
        self._all_pushed = threading.Barrier(workers)
        self._lock = threading.Lock()
        self._pulled = 0
        self.error: Exception | None = None

    def attend(self, channel: Channel, rank: int) -> None:
        """Serve one worker to the end of the run; what goes wrong ends the job, and is kept in ``error``."""
        size = self._seat.job.model_bytes
        try:
            for iteration in range(1, self._seat.iterations + 1):
                channel.expect(Frame(Kind.PUSH, rank, iteration, size))
                self._all_pushed.wait()
                channel.send(Frame(Kind.PULL, 0, iteration, size))
                channel.expect(Frame(Kind.GOT, rank, iteration))
                self._count(iteration)
        except (PeerLostError, HaltedError, OSError, threading.BrokenBarrierError) as error:
            with self._lock:
                # The barrier breaks because of another thread's error, which is then the one to tell.
                if self.error is None or isinstance(self.error, threading.BrokenBarrierError):
                    self.error = error
            self._all_pushed.abort()
            self._seat.sockets.shut()

    def _count(self, iteration: int) -> None:
        with self._lock:
            self._pulled += 1
            if self._pulled == self._workers:
                self._pulled = 0
                self._seat.finished(iteration)


def work(seat: Seat) -> list[Channel]:
    """A worker's part. Raises PeerLostError, HaltedError."""
    server, size = seat.call(0), seat.job.model_bytes
    ready = time.monotonic()
    for iteration in range(1, seat.iterations + 1):
        seat.compute(ready)
        server.send(Frame(Kind.PUSH, seat.rank, iteration, size))
        server.expect(Frame(Kind.PULL, 0, iteration, size))
        ready = time.monotonic()
        server.send(Frame(Kind.GOT, seat.rank, iteration))
    return [server]
