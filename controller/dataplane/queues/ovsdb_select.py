"""What the tables of an Open vSwitch database hold, asked over a connection of our own: JSON-RPC as in RFC 7047.

The controller looks at every database each few seconds. ``ovs-vsctl`` would be a process for each look, and whoever
starts a process stands still, with all its threads, until the other program runs.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eventlet.green import socket
from eventlet.green.ssl import GreenSSLSocket
from ryu.lib import hub

from controller.access.certificates.contexts import TlsContext
from controller.access.certificates.reasons import reason

TIMEOUT_SECONDS = 5
MAX_ANSWER = 32 << 20
"""The longest answer in bytes: about 100,000 queues."""
_DEFAULT_PORT = 6640
_RUN_FOLDER = "/var/run/openvswitch"
_AT_ONCE = 1 << 18

Row = Mapping[str, Any]
State = Mapping[str, tuple[Row, ...]]


class OvsdbError(Exception):
    """The switch's database cannot be read or changed; the message says why, in one line."""


def select(
    address: str,
    tables: Mapping[str, Sequence[str]],
    *,
    seconds: float = TIMEOUT_SECONDS,
    max_answer: int = MAX_ANSWER,
    tls: TlsContext | None = None,
) -> State:
    """All rows of some tables, of each its columns named here, as they are at one moment.

    An address that begins with ``ssl:`` needs ``tls``.

    Raises OvsdbError, also where the answer takes longer than ``seconds`` or has more than ``max_answer`` bytes.
    """
    operations = [
        {"op": "select", "table": table, "where": [], "columns": list(columns)} for table, columns in tables.items()
    ]
    question = {"method": "transact", "params": ["Open_vSwitch", *operations], "id": 0}
    late = OvsdbError(f"{address}: the database has not answered within {seconds:g} s")
    try:
        with hub.Timeout(seconds, late), _connect(address, tls) as connection:
            _send(connection, json.dumps(question).encode())
            answer = _receive(connection, max_answer)
    except ssl.SSLError as error:
        raise OvsdbError(f"{address}: the database cannot be reached by TLS: {reason(error)}") from error
    except OSError as error:
        raise OvsdbError(f"{address}: the database cannot be reached: {error.strerror or error}") from error
    except ValueError as error:
        raise OvsdbError(f"{address}: {error}") from error
    return parse_answer(address, answer, tables)


def parse_answer(address: str, answer: Any, tables: Mapping[str, Sequence[str]]) -> State:
    """The rows in an answer: sets as frozensets, maps as dicts, ids as text. Raises OvsdbError."""
    try:
        refusals = [answer["error"], *(each.get("error") for each in answer["result"] or ())]
        refusal = next((each for each in refusals if each is not None), None)
        if refusal is not None:
            raise OvsdbError(f"{address}: the database refuses to be read: {json.dumps(refusal)}")
        return {
            table: tuple({name: _value(row[name]) for name in columns} for row in found["rows"])
            for (table, columns), found in zip(tables.items(), answer["result"], strict=True)
        }
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise OvsdbError(f"{address}: the answer is none of a database: {type(error).__name__}: {error}") from error


def is_by_tls(address: str) -> bool:
    """Whether a database at this address is reached by TLS."""
    return address.startswith("ssl:")


def _connect(address: str, tls: TlsContext | None) -> Any:
    """A connection to an address as Open vSwitch writes it: ``unix:PATH``, ``tcp:HOST:PORT`` or ``ssl:HOST:PORT``.

    Raises OSError, and ValueError where there is no ``tls`` for the last one.
    """
    kind, _, place = address.partition(":")
    if kind in ("tcp", "ssl"):
        host, _, port = place.rpartition(":") if not place.endswith("]") and ":" in place else (place, "", "")
        connection = socket.create_connection((host.strip("[]"), int(port or _DEFAULT_PORT)))
        return _secure(connection, tls) if kind == "ssl" else connection
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A path that is not absolute begins where Open vSwitch has its sockets.
        connection.connect(str(Path(os.environ.get("OVS_RUNDIR", _RUN_FOLDER)) / place))
    except BaseException:
        connection.close()
        raise
    return connection


def _secure(connection: Any, tls: TlsContext | None) -> Any:
    """The connection with TLS, after the handshake. Raises OSError and ValueError."""
    try:
        if tls is None:
            raise ValueError("it needs certificates, and no setting names any")
        secured = GreenSSLSocket(connection, do_handshake_on_connect=False, _context=tls.current)
    except BaseException:
        connection.close()
        raise
    try:
        secured.do_handshake()
    except BaseException:
        secured.close()
        raise
    return secured


def _send(connection: Any, data: bytes) -> None:
    """Send ``data``. Raises OSError; where the other side has said why it hung up, that is the error.

    In TLS 1.3 the handshake ends for a client before the server has judged its certificate. A server that refuses it
    sends the reason and closes, so the next write may fail while the reason waits to be read.
    """
    try:
        connection.sendall(data)
    except OSError:
        connection.recv(_AT_ONCE)
        raise


def _receive(connection: Any, max_answer: int) -> Any:
    """One JSON text, which nothing marks the end of but itself. Raises ValueError."""
    data = bytearray()
    while part := connection.recv(_AT_ONCE):
        data += part
        if len(data) > max_answer:
            raise ValueError(f"the database's answer has more than {max_answer} bytes")
        if data.endswith(b"}"):
            try:
                return json.loads(data)
            except ValueError:
                continue  # the brace was one inside, and more is to come
    raise ValueError("the database has hung up before the end of its answer")


def _value(value: Any) -> Any:
    match value:
        case ["uuid", name]:
            return name
        case ["set", items]:
            return frozenset(_value(item) for item in items)
        case ["map", pairs]:
            return {_value(key): _value(item) for key, item in pairs}
    return value
