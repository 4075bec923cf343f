"""Asks a daemon of Open vSwitch what ``ovs-appctl`` asks, without a process for each question."""

from __future__ import annotations

import json
import socket
from pathlib import Path


def ask(control: Path, method: str, *arguments: str) -> str:
    """Returns the answer of the daemon with this control socket. Raises AssertionError where it refuses."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(control))
        connection.sendall(json.dumps({"id": 0, "method": method, "params": arguments}).encode())
        text = b""
        while part := connection.recv(1 << 16):
            text += part
            if part.rstrip().endswith(b"}") and (answer := _whole(text)) is not None:
                assert answer["error"] is None, f"{method}: {answer['error']}"
                return answer["result"]
    raise AssertionError(f"{method}: the daemon hung up after {text!r}")


def _whole(text: bytes) -> dict[str, str] | None:
    try:
        return json.loads(text)
    except ValueError:
        return None
