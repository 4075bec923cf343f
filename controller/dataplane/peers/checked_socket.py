"""A peer's connection as Ryu reads and writes it: only whole messages that have been checked come out of it."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import time
import weakref
from collections.abc import Callable
from typing import Any

from eventlet.hubs import get_hub
from ryu.lib import hub

from controller.dataplane.peers.log import PeerLog
from controller.dataplane.peers.message_stream import MessageStream, RefusedError

HANDSHAKE_SECONDS = 15.0
"""A peer that has not become a switch by then is disconnected; switches take milliseconds."""
TURN_SECONDS = 0.005
"""After so long one peer's messages make way for everything else."""
_EARLY_BYTES = 4096
_BYTES = 16_384
"""Received at once: of the smallest messages so many that they take less than a turn."""


class CheckedSocket:
    """Stands in for the socket of ``connection``, a green one, in Ryu's ``Datapath``.

    ``ready`` is called once, when the peer has become a switch. ``log`` is told why a connection is ended.
    """

    def __init__(self, connection: Any, address: str, log: PeerLog, ready: Callable[[], None]) -> None:
        self._socket = connection
        self._address = address
        self._log = log
        self._ready = ready
        self._stream = MessageStream()
        self._writing = hub.Semaphore(1)
        self._turn_ends = 0.0
        self._is_refused = False
        self._is_ready = False
        # Not a green thread: one that is cancelled keeps the frames of those who did so, and this object in them.
        self._deadline = get_hub().schedule_call_global(HANDSHAKE_SECONDS, hub.spawn, _expire, weakref.ref(self))

    # What Ryu calls.

    def setsockopt(self, *arguments: Any) -> None:
        """As of a socket."""
        self._socket.setsockopt(*arguments)

    def settimeout(self, seconds: float | None) -> None:
        """As of a socket."""
        self._socket.settimeout(seconds)

    def shutdown(self, how: int) -> None:
        """As of a socket."""
        self._socket.shutdown(how)

    def close(self) -> None:
        """As of a socket. What the peer has sent is dropped, and so is ``ready``.

        ``ready`` may lead back to this object, and the collector of such rings seldom runs in the controller.
        """
        self._deadline.cancel()
        self._socket.close()
        self._ready = _nothing
        self._stream = MessageStream()

    def recv(self, _size: int) -> bytes:
        """One checked message; b"" after the last one, which is where the peer ends or breaks a rule.

        Raises OSError as a socket does. A peer that floods holds up nothing else for longer than its turn.
        """
        try:
            while not self._is_refused:
                self._make_way()
                step = self._stream.take()
                if step is None:
                    received = self._socket.recv(_BYTES if self._stream.is_ready else _EARLY_BYTES)
                    if not received:
                        break
                    self._stream.feed(received)
                elif step.reply:
                    # Who does not read its answers is not read either: only this connection waits.
                    with contextlib.suppress(TimeoutError):
                        self._write(step.reply)
                else:
                    self._note_ready()
                    return step.deliver
        except RefusedError as error:
            self.refuse(str(error), error.reply)
        except ssl.SSLError as error:  # which Ryu takes for a timeout, and would ask again for ever
            self.refuse(f"its TLS is broken: {error.reason}")
        return b""

    def sendall(self, data: bytes) -> None:
        """As of a socket; ``data`` is one message."""
        self._stream.sent(data)
        self._write(data)

    # What the listener calls.

    def refuse(self, reason: str, reply: bytes = b"") -> None:
        """End the connection, after ``reply`` where it can be sent at once."""
        if self._is_refused:
            return
        self._is_refused = True
        text = f"the OpenFlow connection from {self._address} is ended: {reason}"
        self._log.say(logging.WARNING, self._address, text)
        with contextlib.suppress(OSError):
            if reply:
                self._write(reply)
            self._socket.shutdown(socket.SHUT_RDWR)

    def _note_ready(self) -> None:
        if self._stream.is_ready and not self._is_ready:
            self._is_ready = True
            self._deadline.cancel()
            self._ready()

    def _make_way(self) -> None:
        now = time.monotonic()
        if now >= self._turn_ends:
            hub.sleep(0)
            self._turn_ends = time.monotonic() + TURN_SECONDS

    def _write(self, data: bytes) -> None:
        try:
            with self._writing:
                self._socket.sendall(data)
        except TimeoutError:
            self.refuse("it does not read what it is sent")
            raise


def _expire(connection: weakref.ref[CheckedSocket]) -> None:
    checked = connection()
    if checked is not None:
        checked.refuse(f"it has not become a switch within {HANDSHAKE_SECONDS:g} s")


def _nothing() -> None:
    """Do nothing."""
