"""The agent as a process: what somebody else changes is back within two of the controller's periods, and said once."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.hosts.own_namespace import own_namespace
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from evaluation.bench.support.waiting import wait_until
from tests.support.host.agent_process import Agent, give
from tests.support.host.repaired import NIC, make_interface, plan, sh, variants, walked

VARIANT = variants()[-1]
"""The one that ``iptables`` is by default, where both work."""

PERIOD_SECONDS = 0.3
MOST_SECONDS = 15.0
"""Two periods, and what a busy machine adds. Without a look each period it takes longer, or for ever."""


@pytest.fixture
def server() -> Iterator[ReporterServer]:
    with own_namespace():
        make_interface()
        made = ReporterServer()
        made.period_seconds = PERIOD_SECONDS
        yield made
        made.stop()


@pytest.fixture
def agent(server: ReporterServer, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path, server)
    yield made
    made.process.terminate()
    assert made.process.wait(20) == 0, made.said("")
    assert not made.said("Traceback")


def rules() -> tuple[Any, ...]:
    return walked(sh(f"{VARIANT}-save -t mangle"))


def live() -> str:
    """The chain with the marks' rules that is in force."""
    return "TRAINYARD-A" if "-A TRAINYARD -g TRAINYARD-A\n" in sh(f"{VARIANT}-save -t mangle") else "TRAINYARD-B"


def test_marks_and_the_tree_are_back_within_two_periods_and_a_fight_is_not_fought(
    server: ReporterServer, agent: Agent
) -> None:
    give(server, plan(1, ports={"a": 5001}))
    wait_until(lambda: "5001" in str(rules()))
    old = sh(f"{VARIANT}-save -t mangle")
    give(server, plan(2, ports={"b": 5002}))
    wait_until(lambda: "5002" in str(rules()))
    good = rules()
    tree = sh(f"tc filter show dev {NIC}").count("flowid")
    for change in (
        lambda: sh(f"{VARIANT}-restore", old),
        lambda: sh(f"{VARIANT} -t mangle -F {live()}"),
    ):
        said = len(agent.said())
        change()
        wait_until(lambda said=said: len(agent.said()) == said + 1, MOST_SECONDS)
        wait_until(lambda: rules() == good, MOST_SECONDS)
    sh(f"tc filter del dev {NIC} parent 7472:")
    wait_until(lambda: sh(f"tc filter show dev {NIC}").count("flowid") == tree, MOST_SECONDS)
    sh(f"{VARIANT} -t mangle -I OUTPUT -j ACCEPT")
    wait_until(lambda: agent.said("stands before the agent's and takes all packets"), MOST_SECONDS)
    sh(f"{VARIANT} -t mangle -D OUTPUT -j ACCEPT")
    # Each once, also a few looks later.
    time.sleep(4 * PERIOD_SECONDS)
    first, second, third = agent.said()
    assert "iptables, table mangle" in first and "rule" in first
    assert "all rules of chain TRAINYARD-" in second and "(1) were gone; it is put back" in second
    assert "the filter for DSCP 59" in third and "were gone" in third
    assert len(agent.said("stands before the agent's")) == 1
    # Somebody who does it again and again is not answered in a busy loop.
    until = time.monotonic() + 12 * PERIOD_SECONDS
    while time.monotonic() < until:
        subprocess.run([VARIANT, "-t", "mangle", "-F", "TRAINYARD"], check=False, capture_output=True)
        time.sleep(PERIOD_SECONDS / 6)
    assert 2 <= len(agent.said("chain TRAINYARD ")) <= 6
    wait_until(lambda: agent.said("the next one comes in 2 s at the earliest"), MOST_SECONDS)
    wait_until(lambda: rules() == good, MOST_SECONDS)
