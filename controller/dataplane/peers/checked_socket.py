"""A peer's connection as Ryu reads and writes it. Ryu receives only whole messages that have been checked."""

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
"""A peer that has not become a switch within this time is disconnected. Switches take milliseconds."""
TURN_SECONDS = 0.005
"""After this time of one peer's messages, other green threads run."""
_EARLY_BYTES = 4096
_BYTES = 16_384
"""Limits the bytes of one receive call, so that even the smallest messages in it take less than a turn."""


class CheckedSocket:
    """Replaces the green socket ``connection`` in Ryu's ``Datapath``.

    ``ready`` is called once, when the peer has become a switch. ``log`` gets the reason why a connection is ended.
    """

    def __init__(
        self,
        connection: Any,
        address: str,
        log: PeerLog,
        ready: Callable[[], None],
        *,
        handshake_seconds: float = HANDSHAKE_SECONDS,
    ) -> None:
        self._socket = connection
        self._address = address
        self._log = log
        self._ready = ready
        self._stream = MessageStream()
        self._writing = hub.Semaphore(1)
        self._turn_ends = 0.0
        self._is_refused = False
        self._is_ready = False
        # A timer, not a green thread: a cancelled thread would keep this object alive through its canceller's frames.
        self._deadline = get_hub().schedule_call_global(
            handshake_seconds, hub.spawn, _expire, weakref.ref(self), handshake_seconds
        )

    # Calls of Ryu.

    def setsockopt(self, *arguments: Any) -> None:
        """Set an option, as of a socket."""
        self._socket.setsockopt(*arguments)

    def settimeout(self, seconds: float | None) -> None:
        """Set the timeout, as of a socket."""
        self._socket.settimeout(seconds)

    def shutdown(self, how: int) -> None:
        """Shut the connection down, as of a socket."""
        self._socket.shutdown(how)

    def close(self) -> None:
        """Close the connection, as of a socket. Drops ``ready`` and what the peer has sent.

        ``ready`` may refer to this object, and the collector of reference cycles seldom runs in the controller.
        """
        self._deadline.cancel()
        self._socket.close()
        self._ready = _nothing
        self._stream = MessageStream()

    def recv(self, _size: int) -> bytes:
        """Returns one checked message, or b"" after the peer has ended the connection or broken a rule.

        Raises OSError as a socket does. A flooding peer delays other green threads by one turn at most.
        """
        try:
            while not self._is_refused:
                self._yield_turn()
                step = self._stream.next_step()
                if step is None:
                    received = self._socket.recv(_BYTES if self._stream.is_ready else _EARLY_BYTES)
                    if not received:
                        break
                    self._stream.feed(received)
                elif step.reply:
                    # A peer that does not read its answers is not read either. Only this connection waits.
                    with contextlib.suppress(TimeoutError):
                        self._write(step.reply)
                else:
                    self._note_ready()
                    return step.deliver
        except RefusedError as error:
            self.refuse(str(error), error.reply)
        except ssl.SSLError as error:  # Ryu would take it for a timeout and retry for ever
            self.refuse(f"its TLS is broken: {error.reason}")
        return b""

    def sendall(self, data: bytes) -> None:
        """Send ``data``, whole messages, as of a socket."""
        self._stream.sent(data)
        self._write(data)

    # Calls of the listener.

    def refuse(self, reason: str, reply: bytes = b"") -> None:
        """End the connection, after sending ``reply`` if possible."""
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

    def _yield_turn(self) -> None:
        now = time.monotonic()
        if now >= self._turn_ends:
            hub.sleep(0)
            self._turn_ends = time.monotonic() + TURN_SECONDS

    def _write(self, data: bytes) -> None:
        try:
            with self._writing:
                self._socket.sendall(data)
        except TimeoutError:
            self.refuse("it does not read the messages sent to it")
            raise


def _expire(connection: weakref.ref[CheckedSocket], seconds: float) -> None:
    checked = connection()
    if checked is not None:
        checked.refuse(f"it has not become a switch within {seconds:g} s")


def _nothing() -> None:
    """Do nothing."""
