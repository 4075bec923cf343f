"""Ring all-reduce: in 2 (n - 1) steps each peer sends its successor the chunk that it received in the step before.

P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009,
doi:10.1016/j.jpdc.2008.09.002. The model is cut into n chunks. The first n - 1 steps send partial sums, the others full
sums. The sum is really computed, of one number for each chunk, which the header carries. Each peer adds its rank + 1,
and checks at the end that every chunk's number is n (n + 1) / 2.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from topologies.trainer.transfers.frames import Frame, Kind, PeerLostError
from topologies.trainer.transfers.memory import touched
from topologies.trainer.transfers.parts import equal_parts
from topologies.trainer.transfers.rails import AnyChannel
from topologies.trainer.transfers.task import TaskContext


def sent_chunk(rank: int, step: int, peers: int) -> int:
    """Returns the chunk that ``rank`` sends in ``step`` (from 0): first its own, then the one that it received last."""
    return (rank - step) % peers


def peer(context: TaskContext) -> list[AnyChannel]:
    """Run a peer. Raises PeerLostError, HaltedError, OSError."""
    peers = len(context.job.hosts)
    listener = context.listen()
    largest = max(equal_parts(context.job.model_bytes, peers))
    buffers = touched(largest), touched(largest)
    context.begin()
    before = (context.rank - 1) % peers
    # A call ends when the peer answers. Where all call first, nobody answers. So each calls and answers at once.
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(context.call, (context.rank + 1) % peers)
        predecessor = context.welcome(listener, {before})[before]
        successor = called.result()
    predecessor.gathers(largest)
    sender: _Sender | _Thread = (
        _Sender(successor) if context.kernel_buffers and successor.holds(largest) else _Thread(successor)
    )
    try:
        ready = time.monotonic()
        for iteration in range(1, context.iterations + 1):
            context.compute(ready)
            _all_reduce(context, iteration, sender, predecessor, buffers)
            ready = time.monotonic()
            context.finished(iteration)
    finally:
        sender.end()
    return [successor, predecessor]


def _all_reduce(
    context: TaskContext,
    iteration: int,
    sender: _Sender | _Thread,
    predecessor: AnyChannel,
    buffers: tuple[memoryview, memoryview],
) -> None:
    peers = len(context.job.hosts)
    before = (context.rank - 1) % peers
    sizes = equal_parts(context.job.model_bytes, peers)
    sums = [context.rank + 1] * peers
    # Two buffers take turns: step k + 1 sends from the buffer into which step k has received.
    outgoing, incoming = buffers
    for step in range(2 * (peers - 1)):
        chunk = sent_chunk(context.rank, step, peers)
        sender.start(
            Frame(Kind.CHUNK, context.rank, iteration, sizes[chunk], step, chunk, sums[chunk]), outgoing[: sizes[chunk]]
        )
        chunk = sent_chunk(before, step, peers)
        frame = predecessor.expect(
            Frame(Kind.CHUNK, before, iteration, sizes[chunk], step, chunk), incoming[: sizes[chunk]]
        )
        sums[chunk] = frame.value + (sums[chunk] if step < peers - 1 else 0)
        sender.wait()
        outgoing, incoming = incoming, outgoing
    if set(sums) != {peers * (peers + 1) // 2}:
        raise PeerLostError(f"the all-reduce of iteration {iteration} gave {sums}, which is not the sum of all peers")


class _Sender:
    """Sends chunks that the kernel can hold, so that sending never waits for the other peers."""

    def __init__(self, channel: AnyChannel) -> None:
        self._channel = channel

    def start(self, frame: Frame, body: memoryview) -> None:
        """Send. Raises PeerLostError."""
        self._channel.send(frame, body)

    def wait(self) -> None:
        """Do nothing: the kernel has the chunk already."""

    def end(self) -> None:
        """Do nothing: there is no thread to end."""


class _Thread:
    """Sends larger chunks in a thread of its own; with one thread each, full sockets could block all peers."""

    def __init__(self, channel: AnyChannel) -> None:
        self._channel = channel
        self._work: SimpleQueue[tuple[Frame, memoryview] | None] = SimpleQueue()
        self._done: SimpleQueue[PeerLostError | None] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def start(self, frame: Frame, body: memoryview) -> None:
        """Begin to send. The caller must ``wait`` before the next call."""
        self._work.put((frame, body))

    def wait(self) -> None:
        """Wait until the chunk has been sent. Raises PeerLostError."""
        if (error := self._done.get()) is not None:
            raise error

    def end(self) -> None:
        """End the thread."""
        self._work.put(None)

    def _run(self) -> None:
        while (task := self._work.get()) is not None:
            try:
                self._channel.send(*task)
            except PeerLostError as error:
                self._done.put(error)
            else:
                self._done.put(None)
