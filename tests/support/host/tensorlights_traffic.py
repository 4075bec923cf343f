"""Parameter servers that send as fast as they may, and who receives it; a namespace and a process each."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator

from tests.support.host.two_hosts import SENDER, TwoHosts

# One worker connects to each server's port, and the server sends for ever: packets leave from the server's port.
_SERVERS = """
import socket, sys, threading
def serve(listening):
    peer, _ = listening.accept()
    with peer:
        while True:
            peer.sendall(bytes(65536))
for port in sys.argv[1:]:
    listening = socket.create_server(("0.0.0.0", int(port)))
    threading.Thread(target=serve, args=(listening,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
# A line on stdin asks for the bytes that came from each port since the last. What a worker takes at once is bounded, as
# models are: else a job that comes to the front could send megabytes before what it sent last is let out.
_WORKERS = """
import json, socket, sys, threading, time
got = {port: 0 for port in sys.argv[2:]}
def take(port):
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    peer.connect((sys.argv[1], int(port)))
    while data := peer.recv(65536):
        got[port] += len(data)
for port in got:
    threading.Thread(target=take, args=(port,), daemon=True).start()
while not any(got.values()):
    time.sleep(0.01)
print("ready", flush=True)
last = dict(got)
for line in sys.stdin:
    now = dict(got)
    print(json.dumps({port: now[port] - last[port] for port in now}), flush=True)
    last = now
"""


class FanOut:
    """The traffic under way."""

    def __init__(self, workers: subprocess.Popen[str]) -> None:
        self._workers = workers

    def bytes_since(self) -> dict[int, int]:
        """Bytes that came from each port since this was asked last."""
        assert self._workers.stdin is not None
        assert self._workers.stdout is not None
        self._workers.stdin.write("\n")
        self._workers.stdin.flush()
        return {int(port): count for port, count in json.loads(self._workers.stdout.readline()).items()}


def measured(hosts: TwoHosts, *ports: int, settle: float, seconds: float) -> dict[int, int]:
    """Returns the bytes that come from each port in some seconds, some time after all have begun to send."""
    with fan_out(hosts, *ports) as traffic:
        time.sleep(settle)
        traffic.bytes_since()
        time.sleep(seconds)
        return traffic.bytes_since()


@contextlib.contextmanager
def fan_out(hosts: TwoHosts, *ports: int) -> Iterator[FanOut]:
    """Servers at these ports of the sender, each with a worker at the receiver."""
    with contextlib.ExitStack() as stack:
        names = [str(port) for port in ports]
        _start(stack, hosts.command(hosts.sender, sys.executable, "-c", _SERVERS, *names))
        yield FanOut(_start(stack, hosts.command(hosts.receiver, sys.executable, "-c", _WORKERS, SENDER, *names)))


def _start(stack: contextlib.ExitStack, command: list[str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end() -> None:
        process.kill()
        process.communicate()

    stack.callback(end)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process
