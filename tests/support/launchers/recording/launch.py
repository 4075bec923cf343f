"""One launch, looked at while its ranks wait, as the document that ``tests/data/launchers`` keeps."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.bench.support.waiting import wait_until
from tests.support.launchers.machine.users import User
from tests.support.launchers.recording.neutral import Neutral, ranks
from tests.support.launchers.recording.process_facts import Seen, launched
from tests.support.launchers.recording.scenarios import Batch, Direct
from tests.support.launchers.slurm.cluster import SlurmCluster
from tests.support.launchers.torchrun import LABEL, PYTHON
from tests.support.paths import SUPPORT

VARIABLE = "TRAINYARD_RECORDING"
"""The variable by which a launch's processes are told from all others here."""

RANK = SUPPORT / "launchers" / "recording" / "rank.py"
READY_SECONDS = 120.0


@dataclass
class Launch:
    """Starts ranks in a folder, and looks at them. ``names``: texts of this machine and what stands for them."""

    folder: Path
    user: User
    names: dict[str, str]
    python: str = "/usr/bin/python3"
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        self.home = self.user.folder(self.folder / f"home-{self.mark}")
        self._release = self.home / "release"
        self._script = self.home / "train.py"
        self._script.write_text(RANK.read_text())
        self.names = {**self.names, str(self.home): "/home/alice", os.uname().nodename: "login1"}
        self.names |= {str(PYTHON): "/opt/venv/bin/python", self.user.name: "alice"}

    @property
    def _variables(self) -> dict[str, str]:
        # Whoever is at home elsewhere writes there.
        return {VARIABLE: self.mark, "HOME": str(self.home), **LABEL}

    @property
    def program(self) -> tuple[str, ...]:
        """The command of one rank."""
        return (self.python, str(self._script), str(self._release))

    def record_batch(self, cluster: SlurmCluster, scenario: Batch) -> dict[str, Any]:
        """Submit a batch script; look at its ranks once all are there; wait for its end."""
        script = self.home / "job.sh"
        script.write_text(f"#!/bin/bash\n{scenario.body(' '.join(self.program))}\n")
        options = (option for part in _parts(scenario.options) for option in (*part, *self._files(part)))
        job = cluster.submit(script, *options, user=self.user, folder=self.home, **self._variables)
        try:
            found = self._when_ready(scenario.ranks, cluster.nodes)
        finally:
            self._release.touch()
        cluster.wait(job)
        command = ["sbatch", *scenario.options, "job.sh"]
        return self._document(scenario.about, command, found, script.read_text())

    def record_direct(self, scenario: Direct, cluster: SlurmCluster | None = None) -> dict[str, Any]:
        """Start a command with its output in a file; look at its ranks once all are there; wait for its end."""
        command = scenario.command(self.program)
        environment = (cluster.environment if cluster else dict(os.environ)) | self._variables
        with (self.home / "run.out").open("wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment, cwd=self.home,
                **self.user.options,
            )  # fmt: skip
            try:
                found = self._when_ready(scenario.ranks, cluster.nodes if cluster else ())
            finally:
                self._release.touch()
            process.wait(READY_SECONDS)
        return self._document(scenario.about, command, found)

    def _files(self, options: Sequence[str]) -> tuple[str, ...]:
        return (
            ("--output=slurm-%A_%a.out",)
            if any("--array" in option for option in options)
            else ("--output=slurm-%j.out",)
        )

    def _output(self) -> list[str]:
        files = sorted(self.home.glob("*.out"))
        return [line for file in files for line in file.read_text().splitlines()]

    def _when_ready(self, count: int, nodes: Sequence[str]) -> list[Seen]:
        try:
            wait_until(
                lambda: sum("here " in line for line in self._output()) >= count, READY_SECONDS, what="all ranks"
            )
        except AssertionError as error:
            raise AssertionError(f"{error}: {self._output()}") from error
        for number, node in enumerate(nodes, 1):
            self.names[node] = f"gpu{number:02}"
        self._expand_lists(nodes)
        return launched(VARIABLE, self.mark)

    def _expand_lists(self, nodes: Sequence[str]) -> None:
        """Slurm's short form of the nodes' names, too."""
        if nodes:
            stem = nodes[0].removesuffix("1")
            self.names |= {
                f"{stem}[1-{len(nodes)}]": f"gpu[01-{len(nodes):02}]",
                f"{stem}[1:1-": "gpu[2:1-",
            }

    def _document(
        self, about: str, command: Sequence[str], found: list[Seen], script: str | None = None
    ) -> dict[str, Any]:
        own = Path("/proc/self/cgroup").read_text().splitlines()
        neutral = Neutral(self.names, {self.user.uid: 1000, self.user.gid: 1000}, own, (seen.pid for seen in found))
        output = self._output()
        told = ranks(output)
        processes = [neutral.process(seen) | {"rank": told.get(seen.pid)} for seen in found]
        document: dict[str, Any] = {"about": about, "command": [neutral.text(part) for part in command]}
        if script is not None:
            document["script"] = neutral.text(script).splitlines()
        return document | {"output": [neutral.text(line) for line in output], "processes": processes}


def _parts(options: Sequence[str]) -> list[list[str]]:
    """The options of each part of a heterogeneous job, the colon at the head of each but the first."""
    parts: list[list[str]] = [[]]
    for option in options:
        if option == ":":
            parts.append([":"])
        else:
            parts[-1].append(option)
    return parts
