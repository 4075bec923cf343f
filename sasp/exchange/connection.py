"""A worker's connection on the server's side: the message being received, and the data still to be sent."""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import dataclass, field

from sasp.core.order import ChunkQueue
from sasp.exchange.frames import HEADER_BYTES, Frame


@dataclass(eq=False)
class WorkerConnection:
    """One connection. ``rank`` is known once it has greeted, ``order`` once it has finished a forward pass.

    ``done``: it sends nothing more; ``send_closed``: nothing more is sent to it; ``ended``: the connection is closed.
    """

    sock: socket.socket
    name: str
    since: float
    queue: ChunkQueue
    rank: int | None = None
    order: tuple[int, ...] | None = None
    done: bool = False
    send_closed: bool = False
    ended: bool = False
    messages: deque[bytes] = field(default_factory=deque)
    sending: deque[memoryview] = field(default_factory=deque)
    head: bytearray = field(default_factory=lambda: bytearray(HEADER_BYTES))
    frame: Frame | None = None
    body: bytearray = field(default_factory=bytearray)
    got: int = 0

    def stop_sending(self) -> None:
        """Discard all that waits to be sent, and send nothing more."""
        self.send_closed = True
        self.messages.clear()
        self.sending.clear()

    def send_on(self) -> bool:
        """Go on sending what has begun and the messages beside the chunks; returns whether all of it was sent."""
        while self.sending or self.messages:
            if not self.sending:
                self.sending.append(memoryview(self.messages.popleft()))
            try:
                sent = self.sock.sendmsg(list(self.sending))
            except BlockingIOError:
                return False
            except OSError:
                # What it said before its end waits to be read, perhaps that it is done. Reading then meets the end.
                self.stop_sending()
                return True
            while self.sending and sent >= len(self.sending[0]):
                sent -= len(self.sending.popleft())
            if sent:
                self.sending[0] = self.sending[0][sent:]
        return True
