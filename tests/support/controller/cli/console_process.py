"""``trainyard console FOLDER ...`` as a process, which serves recorded runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import requests


class Console:
    """The command, which serves. ``first`` is what it printed first."""

    def __init__(self, *arguments: str | Path, **variables: str) -> None:
        command = [sys.executable, "-m", "controller.cli.main", "console", *map(str, arguments), "--json"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | variables
        )
        assert self.process.stdout is not None
        shown = ""
        while line := self.process.stdout.readline():
            shown += line
            if line == "}\n":
                break
        self.first: dict[str, Any] = json.loads(shown)
        self.url: str = self.first["url"].rstrip("/")

    def get(self, path: str, method: str = "GET", **headers: str) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(method, self.url + path, headers=headers, timeout=15)

    def end(self) -> tuple[int, str]:
        """Returns the exit status after Ctrl-C, and what was said on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=20)
        return self.process.returncode, said
