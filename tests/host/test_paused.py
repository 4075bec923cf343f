"""The agent as a process on a real host: a paused plan takes its marks and its tree away, and nothing is left."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluation.bench.support.hosts.own_namespace import own_namespace
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from evaluation.bench.support.waiting import wait_until
from tests.support.host.agent_process import Agent, give
from tests.support.host.repaired import NIC, make_interface, plan, sh, variants

VARIANT = variants()[-1]
MOST_SECONDS = 2.0
"""What the product promises from the pause to a host without marks and trees."""


@pytest.fixture
def server() -> Iterator[ReporterServer]:
    with own_namespace():
        make_interface()
        made = ReporterServer()
        made.period_seconds = 0.3
        yield made
        made.stop()


def host() -> tuple[str, str]:
    """The marks and the tree, without counters."""
    return sh(f"{VARIANT}-save -t mangle | grep TRAINYARD || true"), sh(f"tc qdisc show dev {NIC} | grep 7472: || true")


def seconds_until(condition: Callable[[], bool]) -> float:
    began = time.monotonic()
    wait_until(condition, 30)
    return time.monotonic() - began


def most_seconds(change: float) -> float:
    """Returns the limit of a pause. ``change`` is what another plan takes: all of it takes longer on a busy machine."""
    return max(MOST_SECONDS, 4.0 * change)


def test_a_pause_leaves_nothing_and_lasts(server: ReporterServer, tmp_path: Path) -> None:
    agent = Agent(tmp_path, server)
    try:
        give(server, plan(1))
        wait_until(lambda: all(host()))
        give(server, plan(2, ports={"a": 5006}))
        change = seconds_until(lambda: "5006" in host()[0])
        give(server, plan(2, ports={"a": 5006}, paused=True))
        assert seconds_until(lambda: host() == ("", "")) < most_seconds(change)
        assert len(agent.said("the plan is paused")) == 1
        # Plans are made meanwhile, and the agent looks after the host in each period.
        give(server, plan(3, ports={"a": 5007}, paused=True))
        time.sleep(1.0)
        assert host() == ("", "")
        give(server, plan(3, ports={"a": 5007}))
        assert seconds_until(lambda: "5007" in host()[0] and bool(host()[1])) < most_seconds(change)
    finally:
        agent.process.terminate()
        assert agent.process.wait(20) == 0
    assert not agent.said("Traceback")


def test_what_a_killed_agent_has_left_goes_too(server: ReporterServer, tmp_path: Path) -> None:
    first = Agent(tmp_path, server)
    give(server, plan(1))
    wait_until(lambda: all(host()))
    first.process.send_signal(signal.SIGKILL)
    first.process.wait(20)
    assert host()[0]
    give(server, plan(1, paused=True))
    second = Agent(tmp_path, server)
    try:
        wait_until(lambda: host() == ("", ""), 30)
    finally:
        second.process.terminate()
        assert second.process.wait(20) == 0


def test_parameter_servers_bands_go_too(server: ReporterServer, tmp_path: Path) -> None:
    agent = Agent(tmp_path, server, "--nic", "tls-one", "--rate-bps", "1e9")
    for n in (1, 2):
        tasks = [{"role": "ps", "host": "h1", "port": 5000 + n}, {"role": "worker", "host": "h2"}]
        (tmp_path / "jobs.d" / f"j{n}.json").write_text(json.dumps({"id": f"j{n}", "spec": {"tasks": tasks}}))
    try:
        give(server, plan(1))
        wait_until(lambda: "htb" in sh(f"tc qdisc show dev {NIC}"), 30)
        give(server, plan(1, paused=True))
        took = seconds_until(lambda: "htb" not in sh(f"tc qdisc show dev {NIC}"))
        give(server, plan(1))
        assert took < most_seconds(seconds_until(lambda: "htb" in sh(f"tc qdisc show dev {NIC}")))
    finally:
        agent.process.terminate()
        assert agent.process.wait(20) == 0
