"""The whole controller as it is started, for a real switch that a test has made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import requests
import yaml

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.switch_fixtures import DPID, HOSTS, LINK_BPS

GATE_SECONDS = 4
PERIOD_SECONDS = 1.0


class Controller:
    """``ryu-manager controller.app`` with a settings file."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.api_port, self.openflow_port = free_port(), free_port()
        self.folder = folder
        hosts = [
            {"name": f"h{n}", "address": f"10.0.0.{n}", "ingress_bps": LINK_BPS, "egress_bps": LINK_BPS,
             "switch": DPID, "port": n}
            for n in range(1, HOSTS + 1)
        ]  # fmt: skip
        self.settings: dict[str, Any] = {
            "api": {"port": self.api_port},
            "openflow": {"port": self.openflow_port},
            "hosts": hosts,
            "policy": "fifo",
            "assign": "top",  # so that a job moves up when one before it ends
            "period_seconds": PERIOD_SECONDS,
            "gate_seconds": GATE_SECONDS,
            "journal": str(folder / "journal.sqlite"),
        } | settings
        self.start()

    def start(self) -> None:
        path = self.folder / "controller.yaml"
        path.write_text(yaml.safe_dump(self.settings))
        command = [sys.executable, "-W", "ignore", str(Path(sys.executable).parent / "ryu-manager"), "controller.app"]
        with (self.folder / "controller.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, env=os.environ | {"TRAINYARD_CONFIG": str(path)}, stdout=log, stderr=log
            )
        wait_until(lambda: self.process.poll() is not None or self.get("/healthz"), 60, what="the controller's start")
        assert self.process.poll() is None, (self.folder / "controller.log").read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(10)

    def get(self, path: str) -> Any:
        try:
            return self.call("GET", path).json()
        except requests.ConnectionError:
            return None

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        return requests.request(method, f"http://127.0.0.1:{self.api_port}{path}", json=body, timeout=10)

    def ready(self) -> bool:
        return bool(self.call("GET", "/readyz").ok)


def job(port: int) -> dict[str, Any]:
    return {
        "tasks": [
            {"role": "ps", "host": "h1", "port": port},
            {"role": "worker", "host": "h2"},
            {"role": "worker", "host": "h3"},
        ]
    }
