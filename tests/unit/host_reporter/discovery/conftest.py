"""What the tests with real processes and sockets share."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

from host_reporter.notices import Notices
from tests.support.agent.job_sockets import PEER


@pytest.fixture
def notices() -> Notices:
    return Notices(logging.getLogger("test"))


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    """Another host's server: nobody's job here."""
    with socket.create_server((PEER, 0), backlog=1000) as server:
        yield server
