"""Daemons in the foreground, as children of the test: started, watched, and ended by their process id."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.launchers.machine.needs import search_path


class Daemon:
    """One process with its log."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self._name, self._log = command[0], log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env={**environment, "PATH": search_path()},
            )

    def check(self) -> None:
        """Fail with the daemon's own words if it has ended."""
        assert self._process.poll() is None, f"{self._name} ended with {self._process.returncode}: {self.said}"

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self, seconds: float = 10.0) -> None:
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
