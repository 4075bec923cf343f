"""Two hosts, and an agent at the first, for the tests of TensorLights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.host.tensorlights_agent import Agent, agent_at
from tests.support.host.two_hosts import TwoHosts, two_hosts


@pytest.fixture
def hosts() -> Iterator[TwoHosts]:
    with two_hosts() as made:
        yield made


@pytest.fixture
def agent(hosts: TwoHosts, tmp_path: Path) -> Iterator[Agent]:
    with agent_at(hosts, tmp_path) as made:
        yield made
