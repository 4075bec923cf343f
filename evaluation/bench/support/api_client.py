"""A real controller in a process of its own, and raw requests to it, for the tests of the API and the command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import requests
import yaml

from evaluation.bench.support.free_port import free_port

OPERATOR, HOST = "operators-own-token", "token-of-host-h1"


class Process(Protocol):
    """A controller's process, as ``subprocess.Popen`` has it."""

    @property
    def pid(self) -> int:
        """The process id."""

    def poll(self) -> int | None:
        """Returns the exit status; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Returns the exit status when it has ended. Raises subprocess.TimeoutExpired."""

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""


class Begin(Protocol):
    """What starts a controller."""

    def __call__(self, command: Sequence[str], environment: Mapping[str, str], log: Path, /) -> Process:
        """Start a command with an environment, and append its output to a file."""


def spawned(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Start a command in a process of its own."""
    with log.open("ab") as out:
        return subprocess.Popen(command, env=environment, stdout=out, stderr=out)


class Controller:
    """``ryu-manager controller.app`` on free ports of the loopback, without any switch. ``apps``: others beside it.

    ``begin`` starts the process.
    """

    begin: ClassVar[Begin] = staticmethod(spawned)

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
        self.process: Process | None = None

    def write(self) -> None:
        """Write ``settings`` for the next start."""
        self.config.write_text(yaml.safe_dump(self.settings))

    def start(self, verify: bool | str = True, wrapper: Sequence[str] = ()) -> Controller:
        """Start it, by the command ``wrapper`` if need be, which must become it; return when it answers."""
        environment = os.environ | {"TRAINYARD_CONFIG": str(self.config), "PYTHONWARNINGS": "ignore"}
        program = Path(sys.executable).with_name("ryu-manager")
        self.process = self.begin([*wrapper, str(program), "controller.app", *self._apps], environment, self._log)
        try:
            self._wait(self.process, verify)
        except BaseException:
            self.stop(kill=True)  # nobody else would
            raise
        return self

    def _wait(self, process: Process, verify: bool | str) -> None:
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
