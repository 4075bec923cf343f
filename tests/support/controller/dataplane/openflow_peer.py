"""A peer that says it is a switch: bytes on a real socket, with as much of OpenFlow 1.3 as makes Ryu believe it."""

from __future__ import annotations

import contextlib
import queue
import socket
import ssl
import struct
import threading

from evaluation.bench.support.api_client import Controller

_HELLO, _ECHO_REQUEST, _ECHO_REPLY = 0, 2, 3
_FEATURES_REQUEST, _FEATURES_REPLY = 5, 6
_PARTS_REQUEST, _PARTS_REPLY = 18, 19
_PORTS = 13


class Peer:
    """Connects at once, and answers in a thread of its own as long as ``is_silent`` is false."""

    def __init__(self, port: int, dpid: int, source: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.is_silent = False
        self.ended = threading.Event()
        """Set when the other side has ended the connection."""
        self._dpid = dpid
        self._socket = socket.create_connection(("127.0.0.1", port), 10, source_address=(source, 0))
        self._socket.settimeout(None)
        self.shown: bytes | None = None
        """The certificate that the other side has shown, in DER form."""
        self.lost = 0
        """How many echoes of ``ping`` were not answered in order."""
        self._tls = tls
        self._echoes: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(OSError):  # the other side may have been first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._socket.close()

    def ping(self, count: int) -> threading.Event:
        """Send so many echo requests, one after the answer to the other; the event is set after the last answer."""
        done = threading.Event()

        def run() -> None:
            for xid in range(1000, 1000 + count):
                self._send(_ECHO_REQUEST, xid, b"x" * (xid % 100))
                try:
                    self.lost += self._echoes.get(timeout=10) != xid
                except queue.Empty:
                    self.lost += 1
            done.set()

        threading.Thread(target=run, daemon=True).start()
        return done

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # any end, amid a message too
            if self._tls is not None:
                self._socket = self._tls.wrap_socket(self._socket)
                self.shown = self._socket.getpeercert(binary_form=True)
            self._send(_HELLO, 1)
            while True:
                _, kind, length, xid = struct.unpack("!BBHI", self._read(8))
                body = self._read(length - 8)
                if not self.is_silent:
                    self._answer(kind, xid, body)
        self.ended.set()

    def _answer(self, kind: int, xid: int, body: bytes) -> None:
        if kind == _ECHO_REQUEST:
            self._send(_ECHO_REPLY, xid, body)
        elif kind == _ECHO_REPLY:
            self._echoes.put(xid)
        elif kind == _FEATURES_REQUEST:
            self._send(_FEATURES_REPLY, xid, struct.pack("!QIBBxxII", self._dpid, 0, 254, 0, 0, 0))
        elif kind == _PARTS_REQUEST and struct.unpack("!H", body[:2])[0] == _PORTS:
            self._send(_PARTS_REPLY, xid, struct.pack("!HHxxxx", _PORTS, 0))

    def _send(self, kind: int, xid: int, body: bytes = b"") -> None:
        with self._sending:
            self._socket.sendall(struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body)

    def _read(self, size: int) -> bytes:
        """So many bytes. Raises OSError where the connection ends before."""
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionResetError
            data += part
        return data


def is_connected(yard: Controller, dpid: int) -> bool:
    switches = yard.call("GET", "/v1/status").json()["switches"]
    return any(switch["dpid"] == f"{dpid:016x}" and switch["connected"] for switch in switches)
