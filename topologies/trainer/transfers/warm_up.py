"""A warm-up: one exchange over loopback before any job arrives, which loads the code of the first real exchange."""

from __future__ import annotations

import contextlib
import socket
import threading

from topologies.trainer.transfers.frames import Channel, Frame, Kind, PeerLostError
from topologies.trainer.transfers.memory import BLOCK_BYTES

_PATIENCE_SECONDS = 2.0
_KEY = 0


def warm_up() -> None:
    """Push and pull one block over loopback.

    A failure raises nothing; the first job is then a little slower.
    """
    with (
        contextlib.suppress(OSError, PeerLostError),
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), _PATIENCE_SECONDS) as here,
        listener.accept()[0] as there,
    ):
        there.settimeout(_PATIENCE_SECONDS)
        other = threading.Thread(target=_answer, args=(Channel(there, _KEY, "itself"),))
        other.start()
        channel = Channel(here, _KEY, "itself")
        channel.send(Frame(Kind.PUSH, 1, 1, BLOCK_BYTES))
        channel.expect(Frame(Kind.PULL, 0, 1, BLOCK_BYTES))
        other.join()


def _answer(channel: Channel) -> None:
    with contextlib.suppress(PeerLostError):
        channel.expect(Frame(Kind.PUSH, 1, 1, BLOCK_BYTES))
        channel.send(Frame(Kind.PULL, 0, 1, BLOCK_BYTES))
