"""What the lab does at each interface of a host: the agents order it, and meters and queues count and change it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from host_reporter.options import NamedInterface, read_options
from tests.support.lab.endless_job import experiment
from tests.support.lab.unstarted_network import emulation
from topologies.emulation import Emulation
from topologies.lab import nic_queues
from topologies.lab.agents import Agents
from topologies.lab.solo_times import ideal_iteration_seconds
from topologies.lab.use.meters import MeteredLink, links_of


class Launcher:
    """Takes the orders to start agents, and starts none."""

    def __init__(self) -> None:
        self.arguments: list[Sequence[str]] = []

    def start(self, _program: str, arguments: Sequence[str], **_others: object) -> None:
        self.arguments.append(arguments)


@pytest.fixture
def two_rails(tmp_path: Path) -> Emulation:
    return emulation(2, "both", tmp_path)


def test_agents_order_every_interface_at_the_rate_of_a_link(two_rails: Emulation, tmp_path: Path) -> None:
    two_rails._fork_server = launcher = Launcher()  # type: ignore[assignment]
    controller: Any = SimpleNamespace(host_token=lambda _host: "t")
    Agents(two_rails, tmp_path).start_reporters(controller, experiment())
    first, second = (read_options(arguments, {}) for arguments in launcher.arguments)
    assert first.ordered == tuple(NamedInterface(name=f"h1-eth{rail}", rate_bps=50e6) for rail in (0, 1))
    assert [each.name for each in second.ordered] == ["h2-eth0", "h2-eth1"]


def test_every_interface_is_metered(two_rails: Emulation) -> None:
    assert links_of(two_rails)[1:3] == (MeteredLink("h1", "h1-eth1", 7), MeteredLink("h2", "h2-eth0", 7))


def test_queues_change_at_every_interface(two_rails: Emulation, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str | None, str]] = []
    monkeypatch.setattr(two_rails, "run", lambda host, command, **_options: said.append((host, command[-1])))
    with nic_queues.as_wanted(two_rails, experiment().model_copy(update={"nic_queue_bytes": 2**20})):
        changed = [(host, line.split()[4]) for host, text in said for line in text.splitlines()]
        assert changed == [(host, f"{host}-eth{rail}") for host in ("h1", "h2") for rail in (0, 1) for _queue in (1, 2)]


def test_a_lone_job_has_all_links_of_a_host() -> None:
    (job,) = experiment().jobs
    one, two = (ideal_iteration_seconds(job, rails * 50e6) - job.compute_seconds for rails in (1, 2))
    assert one == pytest.approx(2 * two)
    assert one == pytest.approx(job.model_bytes * 8 / 50e6)
