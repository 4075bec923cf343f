"""Every link full, all at once: the control loop stays fast, and nobody starves."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from controller.wire import LatencyState
from tests.lab.network_helpers import LINK_BPS
from topologies.controller_process import ControllerProcess
from topologies.emulation import Emulation
from topologies.queue_proof import Stream, job_spec, measure

HOSTS = 13
REPORTS = 300
LIMIT_SECONDS = 0.25
"""The aim is 100 ms, a measurement's matter: this catches a loop that is slow by design on a noisy machine."""
REPORTING_HOST = "h13"
OTHER_FLOOR = 0.10


def ring(first_port: int) -> list[Stream]:
    """Every host sends to the next: 13 streams that fill every link both ways."""
    return [Stream(f"h{i}", f"h{i % HOSTS + 1}", first_port + i) for i in range(1, HOSTS + 1)]


@dataclass(frozen=True)
class Load:
    streams_bps: list[float]
    pings_ms: list[float]
    report_to_rule: LatencyState


_CACHE: list[Load] = []


@pytest.fixture
def load(testbed: Emulation, controller: ControllerProcess) -> Load:
    """Fill all links with jobs' traffic for a while, ping, and send reports that trigger plans, all at once.

    Once more, should it have been slow: others on the same machine can only slow it down.
    """
    if not _CACHE:
        found = measure_load(testbed, controller)
        if (found.report_to_rule.p99_seconds or 1.0) >= LIMIT_SECONDS:
            controller.stop()
            controller.start()
            controller.wait_ready()
            found = measure_load(testbed, controller)
        _CACHE.append(found)
    return _CACHE[0]


def measure_load(testbed: Emulation, controller: ControllerProcess) -> Load:
    streams = ring(5400)
    tasks = [{"role": "peer", "host": stream.dst, "port": stream.port} for stream in streams]
    demand = [{"src": stream.src, "dst": stream.dst, "bytes": 1e6} for stream in streams]
    # One job, so that no stream's acknowledgements wait behind another's data; it came first and keeps its class.
    controller.call("PUT", "/v1/jobs/ring", {"tasks": tasks, "demand": demand, "arrival": 0.5})
    for k in range(5):
        controller.call("PUT", f"/v1/jobs/idle-{k}", job_spec("h1", 5500 + k, "h2") | {"arrival": 1001.0 + k})
    with ThreadPoolExecutor() as pool:
        began = time.monotonic()
        sending = pool.submit(measure, testbed, streams, seconds=65)
        time.sleep(5)
        pings = [pool.submit(ping, testbed, f"h{i}", f"h{i % HOSTS + 1}", 300) for i in (1, 5, 9)]
        session = f"test-{began}"
        for number in range(1, REPORTS + 1):
            trigger(controller, session, number)
            assert time.monotonic() - began < 62, f"only {number} reports in the time of the load"
        latency = controller.status().report_to_rule
        return Load(sending.result(), [ms for p in pings for ms in p.result()], latency)


def trigger(controller: ControllerProcess, session: str, number: int) -> None:
    """A job that came before the idle ones ends: its host reports that, and they all move up."""
    # A host that never reported has no lease to lose; this one's runs out while other tests run.
    spec = job_spec(REPORTING_HOST, 5390, "h12") | {"arrival": 1.0}
    controller.call("PUT", "/v1/jobs/ahead", spec)
    time.sleep(0.05)
    report = {"session": session, "seq": number, "sent_at": time.time(), "jobs": [{"job": "ahead", "ended": True}]}
    controller.call("POST", f"/v1/hosts/{REPORTING_HOST}/reports", report)
    time.sleep(0.05)


def ping(testbed: Emulation, src: str, dst: str, count: int) -> list[float]:
    out = testbed.run(src, ["ping", "-n", "-i", "0.1", "-c", str(count), testbed.address(dst)], timeout=count)
    times = [float(found) for found in re.findall(r"time=([0-9.]+) ms", out)]
    assert len(times) >= 0.99 * count, f"{src} lost {count - len(times)} of {count} pings to {dst}"
    return times


def test_every_link_is_full(load: Load) -> None:
    assert min(load.streams_bps) > 0.88 * LINK_BPS


def test_a_report_is_in_the_rules_at_once(load: Load) -> None:
    sys.stdout.write(f"\nreport to rule, every link full: {load.report_to_rule}\n")
    assert load.report_to_rule.count >= REPORTS
    assert load.report_to_rule.p99_seconds is not None
    assert load.report_to_rule.p99_seconds < LIMIT_SECONDS, load.report_to_rule


def test_a_ping_takes_less_than_50_ms(load: Load) -> None:
    times = sorted(load.pings_ms)
    assert times[int(0.99 * len(times))] < 50, times[-20:]


def test_other_traffic_keeps_its_floor(testbed: Emulation, register: Callable[..., None]) -> None:
    register("busy", "h1", 5301, "h2", arrival=1000.0)
    streams = [Stream("h2", "h1", 5301), Stream("h3", "h1", 5999)]
    job, other = measure(testbed, streams, seconds=6)
    assert other > 0.85 * OTHER_FLOOR * LINK_BPS
    assert job > 0.8 * LINK_BPS


@pytest.fixture(autouse=True, scope="module")
def _forget() -> Iterator[None]:
    yield
    _CACHE.clear()
