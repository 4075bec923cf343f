"""A real Prometheus on loopback that has its data in a folder of the test."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
import yaml

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until


class PrometheusError(Exception):
    """Prometheus has refused an expression; the message says why."""


class Prometheus:
    """``settings`` is what its settings file says."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._log = folder / "prometheus.log"
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(settings))
        address = f"127.0.0.1:{free_port()}"
        self._url = f"http://{address}/api/v1"
        self._session = requests.Session()
        self._session.trust_env = False
        command = [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address={address}",
            "--log.level=warn",
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(self._answers, what="the start of Prometheus")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and only this one."""
        self._process.terminate()
        self._process.wait(20)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an expression now. Raises PrometheusError."""
        answer = self._session.post(f"{self._url}/query", data={"query": expression}, timeout=10).json()
        if answer["status"] != "success":
            raise PrometheusError(f"{expression}: {answer['error']}")
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def rules(self) -> dict[str, dict[str, Any]]:
        """The alerts by name, each with its ``health`` and its ``state``."""
        answer = self._session.get(f"{self._url}/rules", timeout=10).json()
        return {rule["name"]: rule for group in answer["data"]["groups"] for rule in group["rules"]}

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            return self._session.get(f"{self._url}/status/buildinfo", timeout=2).ok
        except requests.ConnectionError:
            return False
