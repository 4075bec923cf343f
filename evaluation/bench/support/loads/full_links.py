"""A load that fills every link of the testbed both ways, with pings and reports that trigger plans beside it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from controller.code_points import POOL_2
from controller.wire import LatencyState
from topologies.emulation import Emulation
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.queue_proof import Stream, job_spec, measure

REPORTING_HOST = "h13"
LATE_SECONDS = 0.5
_PINGED = (1, 5, 9)
_PINGS_A_SECOND = 10
_PAUSE_SECONDS = 0.05
_SECONDS_A_REPORT = 0.6
"""Three calls, pauses, and room for a slow machine: there a call alone takes 100 ms under this load."""
_WARM_UP_SECONDS = 5
_PINGS_START_SECONDS = 10
"""The pings start within this time: a slow machine answers nothing for seconds meanwhile."""
_IDLE_SECONDS = 10
_SIGN_OF_LIFE_SECONDS = 5


@dataclass(frozen=True)
class FullLinks:
    """Before the load: pings (ms), plans made and rules changed by them. Under it: what each stream got (bit/s), pings
    and bare REST calls (ms), and the controller's own count of its latency, and of that over ``LATE_SECONDS``.
    """

    idle_pings_ms: list[float]
    unchanged_plans: int
    unchanged_flow_mods: int
    streams_bps: list[float]
    pings_ms: list[float]
    calls_ms: list[float]
    report_to_rule: LatencyState
    late: int


def measure_full_links(testbed: Emulation, controller: ControllerProcess, reports: int) -> FullLinks:
    """Fill all links with jobs' traffic, ping, and send reports that trigger plans, all at once.

    Each report says that a job has ended; the job is registered anew before each. Of the latency only reports count, so
    there are more of them where a registration and the end after it shared a plan, which changed no rule.
    The bare calls are the floor: what the same way to the controller and back takes when nothing is planned.
    """
    hosts = testbed.hosts
    seconds = round(_WARM_UP_SECONDS + _PINGS_START_SECONDS + reports * _SECONDS_A_REPORT)
    with _jobs(controller, hosts) as streams, ThreadPoolExecutor() as pool:
        time.sleep(1)
        before = controller.status()
        quiet = [pool.submit(_ping, testbed, hosts[i], hosts[i + 1], _IDLE_SECONDS * _PINGS_A_SECOND) for i in _PINGED]
        idle_pings = [ms for ping in quiet for ms in ping.result()]
        after = controller.status()
        began = time.monotonic()
        sending = pool.submit(measure, testbed, streams, seconds=seconds)
        time.sleep(_WARM_UP_SECONDS)
        count = (seconds - 2 * _WARM_UP_SECONDS) * _PINGS_A_SECOND
        pings = [pool.submit(_ping, testbed, hosts[i], hosts[i + 1], count) for i in _PINGED]
        calls = []
        session = f"full-links-{began}"
        measured = after.report_to_rule.count
        number = 0
        while number < reports or controller.status().report_to_rule.count < measured + reports:
            number += 1
            _trigger(controller, session, number)
            calls.append(_bare_call(controller))
            assert time.monotonic() - began < seconds, f"only {number} reports in the time of the load"
        latency, late = controller.status().report_to_rule, _late(controller)
        # A host that falls silent loses its jobs, and the ring is one of them: it would be all other traffic.
        while not wait([sending], _SIGN_OF_LIFE_SECONDS).done:
            number += 1
            _report(controller, session, number)
        return FullLinks(
            idle_pings_ms=idle_pings,
            unchanged_plans=after.plans - before.plans,
            unchanged_flow_mods=after.flow_mods - before.flow_mods,
            streams_bps=sending.result(),
            pings_ms=[ms for ping in pings for ms in ping.result()],
            calls_ms=calls,
            report_to_rule=latency,
            late=late,
        )


@contextmanager
def _jobs(controller: ControllerProcess, hosts: tuple[str, ...]) -> Iterator[list[Stream]]:
    """A job whose ring of streams fills every link, and five idle ones, which a trigger moves."""
    # Marked as the hosts' agents would mark them.
    streams = [
        Stream(src, dst, 5400 + i, POOL_2.classes[0])
        for i, (src, dst) in enumerate(zip(hosts, hosts[1:] + hosts[:1], strict=True))
    ]
    tasks = [{"role": "peer", "host": stream.dst, "port": stream.port} for stream in streams]
    demand = [{"src": stream.src, "dst": stream.dst, "bytes": 1e6} for stream in streams]
    # One job, so that no stream's acknowledgements wait behind another's data; it came first and keeps its class.
    specs = {"ring": {"tasks": tasks, "demand": demand, "arrival": 0.5}}
    specs |= {f"idle-{k}": job_spec(hosts[0], 5500 + k, hosts[1]) | {"arrival": 1001.0 + k} for k in range(5)}
    for job, spec in specs.items():
        controller.call("PUT", f"/v1/jobs/{job}", spec)
    yield streams
    for job in specs:
        controller.call("DELETE", f"/v1/jobs/{job}")


def _trigger(controller: ControllerProcess, session: str, number: int) -> None:
    """A job that came before the idle ones ends: its host reports that, and they all move up."""
    # A host that never reported has no lease to lose; this one's runs out while other tests run.
    spec = job_spec(REPORTING_HOST, 5390, "h12") | {"arrival": 1.0}
    controller.call("PUT", "/v1/jobs/ahead", spec)
    time.sleep(_PAUSE_SECONDS)
    _report(controller, session, number, {"job": "ahead", "ended": True})
    time.sleep(_PAUSE_SECONDS)


def _report(controller: ControllerProcess, session: str, number: int, *jobs: dict[str, object]) -> None:
    report = {"session": session, "seq": number, "sent_at": time.time(), "jobs": list(jobs)}
    controller.call("POST", f"/v1/hosts/{REPORTING_HOST}/reports", report)


def _bare_call(controller: ControllerProcess) -> float:
    began = time.perf_counter()
    controller.call("GET", "/healthz")
    return (time.perf_counter() - began) * 1e3


def _late(controller: ControllerProcess) -> int:
    """How many reports took longer than ``LATE_SECONDS`` into the rules, by the controller's histogram."""
    name = "trainyard_report_to_rule_seconds"
    families = text_string_to_metric_families(controller.metrics())
    samples = [sample for family in families if family.name == name for sample in family.samples]
    in_time = [one.value for one in samples if one.labels.get("le") == str(LATE_SECONDS)]
    every = [one.value for one in samples if one.name == f"{name}_count"]
    return round(every[0] - in_time[0])


def _ping(testbed: Emulation, src: str, dst: str, count: int) -> list[float]:
    command = ["ping", "-n", "-i", f"{1 / _PINGS_A_SECOND}", "-c", str(count), testbed.address(dst)]
    out = testbed.run(src, command, timeout=count)
    times = [float(found) for found in re.findall(r"time=([0-9.]+) ms", out)]
    assert len(times) >= 0.99 * count, f"{src} lost {count - len(times)} of {count} pings to {dst}"
    return times
