"""What every arm has around its jobs: all of it ends and its logs are kept, and the cause of a failure comes out."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controller.wire.event_stream import Sent
from topologies.errors import LabError
from topologies.lab import arm
from topologies.lab.controller_process import ControllerSilentError
from topologies.lab.results import PolicyChoice

PLANNED = SimpleNamespace(link_bps=1e8, queues=8, period_seconds=1.0)
DID: list[str] = []
"""What was done, in order."""


class Controller:
    hosts: tuple[SimpleNamespace, ...] = ()

    def __init__(
        self,
        _emulation,
        folder: Path,
        policy: str,
        *,
        options,
        plugins: str,
        classes: int,
        period_seconds: float,
        enforce: tuple[str, ...],
        identity: str,
    ) -> None:
        self.folder = folder
        self.enforce = enforce
        DID.append(f"{policy} {dict(options)} {plugins} {classes} {period_seconds:g} {'+'.join(enforce)} {identity}")

    def start(self) -> None:
        self.folder.mkdir()
        (self.folder / "controller.log").write_text("started")

    def wait_ready(self) -> None:
        DID.append("ready")

    def events(self, _last: str) -> Iterator[Sent]:
        return iter((Sent("5", '{"id":5,"event":"host","time":100.5,"data":{}}'),))

    def reader(self) -> Callable[[str], Any]:
        def read(path: str) -> Any:
            if path == "/v1/network":
                raise ControllerSilentError("it is gone")
            DID.append(f"asked for {path}")
            return {"jobs": [{"id": "a", "state": "running"}]}

        return read

    def status(self) -> SimpleNamespace:
        return SimpleNamespace(jobs=0, hosts=self.hosts, enforce=self.enforce)

    def wait(self, condition, _seconds: float) -> bool:
        return condition()

    def metrics(self) -> str:
        return "metrics"

    def stop(self) -> None:
        DID.append("controller stopped")


class SilentHost(Controller):
    """Its only host never reports."""

    hosts = (SimpleNamespace(name="h1", alive=False, marks=None),)


class UnmarkedHost(Controller):
    """Its only host reports, and does not mark."""

    hosts = (SimpleNamespace(name="h1", alive=True, marks=False),)


@dataclass
class Process:
    """Ends when it is asked to, or fails to be asked."""

    name: str
    error: Exception | None = None
    returncode: int | None = None
    pid: int = field(default=1, init=False)

    def poll(self) -> int | None:
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.error is not None:
            raise self.error
        DID.append(f"{self.name} {number.name}")

    def wait(self, _timeout: float) -> int:
        self.returncode = 0
        return 0


@pytest.fixture
def emulation(tmp_path: Path) -> SimpleNamespace:
    DID.clear()
    (tmp_path / "memory").mkdir()
    return SimpleNamespace(folder=tmp_path / "memory", hosts=(), fork_server=SimpleNamespace(check=lambda: None))


def test_an_arm_that_ends_well_leaves_its_logs_and_nothing_else(emulation: SimpleNamespace, tmp_path: Path) -> None:
    results = tmp_path / "results"
    choice = PolicyChoice("jpas", {"a": 1}, plugins="here", identity="dscp")
    with arm.running(emulation, PLANNED, choice, results, controller_type=Controller) as run:
        run.jobs.append(Process("job"))
        run.stops.append(lambda: DID.append("tuner stopped"))
        with pytest.raises(LabError, match="the ranks a, b are not ready to start"):
            run.wait_until_ready(frozenset({"a", "b"}), lambda: None, seconds=-1.0, who="the ranks")
        run.meeting.arrive("a")
        run.wait_until_ready(frozenset({"a"}), lambda: None, seconds=0.0, who="the ranks")
        assert run.meeting.announced() is None
        began = run.begin()
        assert began == pytest.approx(run.meeting.announced(), abs=0.001)
        assert run.finish().jobs == 0
        assert DID[-2:] == ["tuner stopped", "job SIGTERM"]
    assert DID[:2] == ["jpas {'a': 1} here 7 1 switches+hosts dscp", "ready"]
    assert DID[-1] == "controller stopped"
    assert DID.count("job SIGTERM") == 1
    assert (results / "controller" / "metrics.txt").read_text() == "metrics"
    assert (results / "controller" / "controller.log").read_text() == "started"
    first, *_ = (results / "events.jsonl").read_text().splitlines()
    assert first == f'{{"id": 5, "event": "host", "time": {round(100.5 - began, 3)}, "data": {{}}}}'
    facts = json.loads((results / "facts.json").read_text())
    assert facts["title"] == "jpas"
    assert facts["started_at"] == began
    assert facts["jobs"] == {"a": {"id": "a", "state": "running"}}, "and the rest is missing, as the controller is"
    assert DID.index("asked for /v1/jobs") < DID.index("controller stopped")
    assert (results / "explanations.jsonl").read_text() == ""
    assert not list(results.glob("*.part"))
    assert not list(emulation.folder.iterdir())


def test_what_went_wrong_counts_and_not_what_fails_on_the_way_out(emulation: SimpleNamespace, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with (
        pytest.raises(LabError, match="the first cause"),
        arm.running(emulation, PLANNED, PolicyChoice("fair"), results, controller_type=Controller) as run,
    ):
        run.jobs += [Process("job"), Process("stuck", OSError("cannot be asked"))]
        run.stops.append(lambda: DID.append("tuner stopped"))
        raise LabError("the first cause")
    assert DID[-3:] == ["tuner stopped", "job SIGTERM", "controller stopped"]
    assert (results / "controller" / "controller.log").exists()
    assert not list(emulation.folder.iterdir())


@pytest.mark.parametrize(
    ("choice", "controller_type"),
    [(PolicyChoice("fair"), SilentHost), (PolicyChoice("fair", enforce=("hosts",)), UnmarkedHost)],
)
def test_an_arm_whose_agents_are_silent_is_taken_down(
    emulation: SimpleNamespace, tmp_path: Path, choice: PolicyChoice, controller_type: Any
) -> None:
    results = tmp_path / "results"
    with (
        pytest.raises(LabError, match="no report, or no marks, from h1; h1's reporter says:"),
        arm.running(emulation, PLANNED, choice, results, controller_type=controller_type),
    ):
        pytest.fail("it must not begin")
    assert DID[-1] == "controller stopped"


def test_where_switches_enforce_an_agent_need_not_mark(emulation: SimpleNamespace, tmp_path: Path) -> None:
    with arm.running(emulation, PLANNED, PolicyChoice("fair"), tmp_path / "results", controller_type=UnmarkedHost):
        assert "ready" in DID
