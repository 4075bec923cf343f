"""``host-reporter --nic tls-...`` as a process on one of two hosts, and what its interface has."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.host.two_hosts import TwoHosts

RATE_BPS = 5e6
HOST = "h1"
PATIENCE_SECONDS = 20.0


@dataclass
class Agent:
    """``host-reporter`` in the sender's namespace, without a controller; its log is ``log``."""

    hosts: TwoHosts
    folder: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def start(
        self, *arguments: str, nic: str = "tls-rr", interface: str | None = None, through: tuple[str, ...] = ()
    ) -> Agent:
        self.jobs.mkdir(exist_ok=True)
        options = ["--nic", nic, "--interface", interface or self.hosts.interface]
        options += ["--rate-bps", f"{RATE_BPS:.0f}", "--host", HOST]
        options += ["--jobs-dir", str(self.jobs), "--progress-dir", str(self.folder / "progress")]
        command = [*through, sys.executable, "-m", "host_reporter.agent", *options, *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.hosts.command(self.hosts.sender, *command), stderr=log)
        return self

    @property
    def jobs(self) -> Path:
        return self.folder / "jobs"

    @property
    def log(self) -> Path:
        return self.folder / "agent.log"

    def says(self, words: str) -> bool:
        return words in " ".join(self.log.read_text().split())

    def job(self, name: str, port: int, *, size: float = 1e6, arrival: float = 1.0, host: str = HOST) -> None:
        workers = ("w1", "w2")
        spec = {
            "tasks": [{"role": "ps", "host": host, "port": port}, *({"role": "worker", "host": w} for w in workers)],
            "demand": [{"src": host, "dst": w, "bytes": size} for w in workers],
            "arrival": arrival,
        }
        self.jobs.mkdir(exist_ok=True)
        part = self.folder / "part"
        part.write_text(json.dumps({"id": name, "spec": spec}))
        part.replace(self.jobs / f"{name}.json")

    def end_job(self, name: str) -> None:
        (self.jobs / f"{name}.json").unlink()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE_SECONDS) == 0, self.log.read_text()

    def children(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(path.read_text().rpartition(")")[2].split()[1]) == self.process.pid:
                    found.append(int(path.parent.name))
        return found


def tc(hosts: TwoHosts, *words: str) -> str:
    done = hosts.run(hosts.sender, "tc", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def whole(hosts: TwoHosts) -> tuple[list[str], ...]:
    """All that the interface has: qdiscs, classes, filters, in an order of their own."""
    shown = (tc(hosts, what, "show", "dev", hosts.interface) for what in ("qdisc", "class", "filter"))
    return tuple(
        sorted(re.sub(r"direct_packets_stat \d+ ", "", line.rstrip()) for line in text.splitlines()) for text in shown
    )


def leaves(hosts: TwoHosts, *, inside: str = "") -> dict[int, str]:
    """The leaf of each server's port, by the kernel's own account, at the root or in the tree ``inside``."""
    of = ("parent", f"{inside}:") if inside else ()
    text = tc(hosts, "filter", "show", "dev", hosts.interface, *of)
    found = re.findall(
        r"flowid [0-9a-f]+:([0-9a-f]+)(?:(?!flowid).)*?match ([0-9a-f]{4})0000/ffff0000 at 20", text, re.S
    )
    return {int(port, 16): leaf for leaf, port in found}


@contextlib.contextmanager
def agent_at(hosts: TwoHosts, folder: Path) -> Iterator[Agent]:
    """Yields an agent that is not started yet. In the end its process is killed."""
    made = Agent(hosts, folder)
    yield made
    with contextlib.suppress(AttributeError):
        made.process.kill()
        made.process.wait()
