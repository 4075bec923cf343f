"""Ports that are given to servers: none twice, whichever process asks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evaluation.bench.support import free_port as module
from evaluation.bench.support.free_port import free_port

_ANOTHER = """
import secrets, sys
from evaluation.bench.support.free_port import free_port
wanted, choice = iter([int(sys.argv[1])]), secrets.choice
secrets.choice = lambda ports: next(wanted, None) or choice(ports)
print(free_port())
"""


def test_no_port_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_port()
    wanted, choice = iter([first, first]), module.secrets.choice
    monkeypatch.setattr(module.secrets, "choice", lambda ports: next(wanted, None) or choice(ports))
    assert free_port() != first


def test_another_process_does_not_get_a_port_that_is_given() -> None:
    given = free_port()
    other = subprocess.run([sys.executable, "-c", _ANOTHER, str(given)], capture_output=True, text=True, check=True)
    assert int(other.stdout) != given
