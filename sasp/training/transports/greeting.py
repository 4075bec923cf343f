"""How a worker reaches its parameter server: it connects and greets until the server answers."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sasp.core.errors import EndOfStreamError, SaspError
from sasp.core.scheme import Scheme
from sasp.core.staleness import PLAIN, StalenessOptions
from sasp.exchange.frames import (
    MAX_JSON_BYTES,
    VERSION,
    Frame,
    Kind,
    json_message,
    notice_silence,
    receive,
    send_all,
)
from sasp.exchange.peers import read_welcome

RETRY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """How a worker joins; ``patience``: seconds to wait for the server.

    ``late``: what is done about late gradients; ``partial``: only layers whose transfer does not fit are late.
    """

    rank: int
    scheme: Scheme
    token: str
    chunk_bytes: int
    patience: float
    late: StalenessOptions = PLAIN
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first message of a worker to its server."""

    who: JoinOptions
    optimizer: str
    options: dict[str, Any]

    def message(self, value_type: str, layers: Sequence[int]) -> bytes:
        """Returns the message; ``layers``: the number of elements of each, all of type ``value_type``."""
        content = {
            "version": VERSION,
            "rank": self.who.rank,
            "token": self.who.token,
            "scheme": str(self.who.scheme),
            "type": value_type,
            "chunk_bytes": self.who.chunk_bytes,
            "layers": list(layers),
            "optimizer": self.optimizer,
            "options": self.options,
            "late": self.who.late.as_json(),
        }
        return json_message(Kind.HELLO, content)


def meet(address: tuple[str, int], greeting: bytes, patience: float) -> tuple[socket.socket, int]:
    """Connects and greets. Returns the socket and the number of workers.

    Tries again where nobody listens yet and where the connection is lost before the answer. Linux resets connections
    that have only begun when a listener has many of them (reqsk_timer_handler). The caller notices it when it sends.

    Raises SaspError where the server refuses, answers nonsense or does not answer for ``patience`` seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return _try_to_meet(address, greeting, max(1.0, deadline - time.monotonic()))
        except (OSError, EndOfStreamError) as error:
            if time.monotonic() > deadline:
                raise SaspError(f"{name_of(address)} does not answer: {error}") from error
        time.sleep(RETRY_SECONDS)


def name_of(address: tuple[str, int]) -> str:
    """Returns what errors call the server."""
    return f"the parameter server at {address[0]}:{address[1]}"


def next_message(sock: socket.socket, server: str, longest: int = MAX_JSON_BYTES) -> tuple[Frame, bytearray]:
    """Returns the server's next message; ``longest``: see ``frames.receive``.

    Raises SaspError where the server refuses or sends nonsense, EndOfStreamError, OSError.
    """
    with explained(server):
        frame, body = receive(sock, longest)
    if frame.kind is Kind.REFUSED:
        raise SaspError(f"{server} refuses: {body.decode(errors='replace')}")
    return frame, body


@contextlib.contextmanager
def explained(server: str) -> Iterator[None]:
    """Names the server in the errors about what it sent."""
    try:
        yield
    except EndOfStreamError:
        raise
    except SaspError as error:
        raise SaspError(f"{server}: {error}") from error


def _try_to_meet(address: tuple[str, int], greeting: bytes, timeout: float) -> tuple[socket.socket, int]:
    server = name_of(address)
    with contextlib.ExitStack() as undo:
        sock = undo.enter_context(socket.create_connection(address, timeout=timeout))
        notice_silence(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            send_all(sock, greeting)
        except OSError:
            # It may have said why before it hung up.
            with contextlib.suppress(OSError, EndOfStreamError):
                next_message(sock, server)
            raise
        frame, body = next_message(sock, server)
        if frame.kind is not Kind.WELCOME:
            raise SaspError(f"{server}: sent {frame.kind.name} where WELCOME was due")
        with explained(server):
            workers = read_welcome(body)
        # The answer comes at once. The parameters come when worker 0 has sent them.
        sock.settimeout(None)
        undo.pop_all()
        return sock, workers
