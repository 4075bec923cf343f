"""Messages between two hosts with several interfaces: each rail carries an equal part of every message, at once.

NCCL spreads an exchange over a server's interfaces in the same way, by its channels. A message without a payload goes
over the first rail alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from topologies.trainer.transfers.frames import Channel, Frame, Kind, check_payload
from topologies.trainer.transfers.parts import equal_parts

Answer = TypeVar("Answer")


class RailChannels:
    """The connections of a job to one peer, one on each rail. It is used as a ``Channel`` is."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._channels = channels
        # One thread may send while another receives, and each has a rail of its own to work on.
        self._helpers = ThreadPoolExecutor(2 * (len(channels) - 1))

    @property
    def peer(self) -> str:
        """The name of the other end."""
        return self._channels[0].peer

    @property
    def sent(self) -> int:
        """The payload bytes that were sent, over all rails."""
        return sum(channel.sent for channel in self._channels)

    @property
    def received(self) -> int:
        """The payload bytes that were received, over all rails."""
        return sum(channel.received for channel in self._channels)

    def send(self, frame: Frame, body: memoryview | None = None) -> None:
        """Send a header and ``frame.length`` bytes, which are those of ``body``, or zeros. Raises PeerLostError."""
        self._at_once(frame, lambda channel, part, start: channel.send(part, _cut(body, start, part.length)))

    def gathers(self, length: int) -> None:
        """Let the kernel hold messages of ``length`` bytes that arrive before they are read."""
        for channel, size in self._parts(length):
            channel.gathers(size)

    def awaits(self, length: int) -> int:
        """Let the first rail be readable once its part of ``length`` bytes has come. Returns its file descriptor."""
        channel, size = self._parts(length)[0]
        return channel.awaits(size)

    def holds(self, length: int) -> bool:
        """Let the kernel hold ``length`` bytes to send. Returns whether such a message can be sent without waiting."""
        held = [channel.holds(size) for channel, size in self._parts(length)]
        return all(held)

    def receive(self) -> Frame:
        """Receive the header of a message without a payload. Raises PeerLostError."""
        return self._channels[0].receive()

    def expect(self, wanted: Frame, target: memoryview | None = None) -> Frame:
        """Receive a message, which must equal ``wanted`` except for its value. The payload goes to ``target``, if any.

        Raises PeerLostError.
        """
        first, *_ = self._at_once(
            wanted, lambda channel, part, start: channel.expect(part, _cut(target, start, part.length))
        )
        return first._replace(length=wanted.length)

    def receive_payload(self, kind: Kind, sizes: Sequence[int]) -> Frame:
        """Receive a GOT, or a message of ``kind`` with a payload of its chunk's size, which is discarded.

        Raises PeerLostError.
        """
        channel = self._channels[0]
        frame = channel.receive()
        if frame.is_got:
            return frame
        own_sizes = [equal_parts(size, len(self._channels))[0] for size in sizes]
        check_payload(self.peer, frame, kind, own_sizes)
        whole = frame._replace(length=sizes[frame.chunk])
        self._at_once(
            whole,
            lambda each, part, _start: channel.discard(part.length) if each is channel else each.expect(part),
        )
        return whole

    def decides_late(self) -> None:
        """Keep little unsent data in the kernel, so that more urgent data need not wait behind it."""
        for channel in self._channels:
            channel.decides_late()

    def _at_once(self, whole: Frame, work: Callable[[Channel, Frame, int], Answer]) -> list[Answer]:
        """Do ``work`` with each channel's part of a message, and where it begins; returns what it returned for each."""
        tasks: list[Callable[[], Answer]] = []
        start = 0
        for number, (channel, size) in enumerate(self._parts(whole.length)):
            if size or number == 0:
                tasks.append(partial(work, channel, whole._replace(length=size), start))
            start += size
        others: list[Future[Answer]] = [self._helpers.submit(task) for task in tasks[1:]]
        # Where this raises, the job ends and with it the sockets, which the helpers then wait for no more.
        return [tasks[0](), *(other.result() for other in others)]

    def _parts(self, length: int) -> list[tuple[Channel, int]]:
        return list(zip(self._channels, equal_parts(length, len(self._channels)), strict=True))


AnyChannel = Channel | RailChannels


def joined(channels: Sequence[Channel]) -> AnyChannel:
    """Returns the channel to a peer, of one connection on each rail."""
    return channels[0] if len(channels) == 1 else RailChannels(channels)


def _cut(body: memoryview | None, start: int, length: int) -> memoryview | None:
    return None if body is None else body[start : start + length]
