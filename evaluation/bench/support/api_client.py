"""A real controller in a process of its own, and raw requests to it, for the tests of the API and the command."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import requests
import yaml

OPERATOR, HOST = "operators-own-token", "token-of-host-h1"
_LOWEST_PORT = 10_000


def free_port() -> int:
    """Returns a port that a server can listen on, at any address of this machine.

    It is not one of those that the system gives to connections: between this call and the server's start, and for a
    minute after its end, a connection from any address would keep a server from listening on 0.0.0.0. Where the system
    gives all ports to connections, it is any free one.
    """
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = [port for port in range(_LOWEST_PORT, 2**16) if not first <= port <= last] or [0]
    while True:
        port = secrets.choice(ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("0.0.0.0", port))
            return int(probe.getsockname()[1])


class Controller:
    """``ryu-manager controller.app`` on free ports of the loopback, without any switch. ``apps``: others beside it."""

    def __init__(
        self, folder: Path, *, token: bool = True, scheme: str = "http", apps: Sequence[str] = (), **settings: Any
    ) -> None:
        self._apps = apps
        self.port = free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        api: dict[str, Any] = {"port": self.port} | settings.pop("api", {})
        if token:
            api |= {"token": OPERATOR, "host_tokens": {"h1": HOST}}
        self.config = folder / "conf.yaml"
        self._log = folder / "log"
        self.settings = {
            "policy": "fifo",
            "period_seconds": 0.5,
            "hosts": [{"name": f"h{i}", "address": f"10.0.0.{i}"} for i in (1, 2, 3)],
            "openflow": {"port": free_port()},
            "ovsdb": f"unix:{folder}/no-switch-here.sock",
            "api": api,
        } | settings
        self.write()
        self.session = requests.Session()
        self.session.trust_env = False
        if token:
            self.session.headers["Authorization"] = f"Bearer {OPERATOR}"
        self.process: subprocess.Popen[bytes] | None = None

    def write(self) -> None:
        """Write ``settings`` for the next start."""
        self.config.write_text(yaml.safe_dump(self.settings))

    def start(self, verify: bool | str = True, wrapper: Sequence[str] = ()) -> Controller:
        """Start it, by the command ``wrapper`` if need be, which must become it; return when it answers."""
        environment = os.environ | {"TRAINYARD_CONFIG": str(self.config), "PYTHONWARNINGS": "ignore"}
        program = Path(sys.executable).with_name("ryu-manager")
        with self._log.open("ab") as log:
            command = [*wrapper, str(program), "controller.app", *self._apps]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            self._wait(self.process, verify)
        except BaseException:
            self.stop(kill=True)  # nobody else would
            raise
        return self

    def _wait(self, process: subprocess.Popen[bytes], verify: bool | str) -> None:
        deadline = time.monotonic() + 120
        while True:
            try:
                if self.session.get(self.url + "/healthz", timeout=5, verify=verify).ok:
                    return
            except requests.RequestException:
                assert process.poll() is None, f"status {process.poll()}: {self.log()}"
                assert time.monotonic() < deadline, self.log()
                time.sleep(0.05)

    def stop(self, *, kill: bool = False) -> None:
        self.end(signal.SIGKILL if kill else signal.SIGTERM)

    def end(self, number: signal.Signals, seconds: float = 20.0) -> int | None:
        """Send a signal, and wait for the end; the exit status."""
        status = None
        if self.process is not None:
            self.process.send_signal(number)
            status = self.process.wait(seconds)
            self.process = None
        return status

    def log(self) -> str:
        return self._log.read_text()

    def call(self, method: str, path: str, body: Any = None, token: str | None = None, **options: Any) -> Any:
        if token is not None:
            options["headers"] = {"Authorization": f"Bearer {token}"} | options.get("headers", {})
        return self.session.request(method, self.url + path, json=body, timeout=15, **options)

    def raw(self, data: bytes, seconds: float = 5.0, *, ends: bool = False) -> bytes:
        """Send bytes as they are, and with ``ends`` say that no more will come; what comes back until the other side
        closes.
        """
        with socket.create_connection(("127.0.0.1", self.port), seconds) as connection:
            connection.sendall(data)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
            return answer
