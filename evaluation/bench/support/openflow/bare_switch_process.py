"""A bare switch in a process of its own, connected to a controller."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until

DPID = 1
SETTINGS = {"queues": "existing", "probe": False}
"""What a controller must be told of it: it has no database, and no queues that test packets could prove."""


@contextmanager
def bare_switch(controller: Controller, ports: int = 0, seconds: float = 60.0) -> Iterator[None]:
    """Run the switch ``DPID``, which counts the traffic of so many ports. Raises AssertionError if it is not ready."""
    openflow: Any = controller.settings["openflow"]
    program = [sys.executable, "-m", "evaluation.bench.support.openflow.bare_switch"]
    switch = subprocess.Popen([*program, str(openflow["port"]), str(DPID), str(ports)])
    try:
        wait_until(lambda: controller.call("GET", "/readyz").ok, seconds, what="a switch that is ready", every=0.05)
        yield
    finally:
        switch.kill()
        switch.wait()
