"""Proves the queues: TCP flows of two registered jobs, in neighbouring classes, compete for one port.

The controller classifies and the switch's queues decide, as for any job. Both flows together want twice the rate of the
receiver's link.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topologies.emulation import Emulation
from topologies.errors import LabError
from topologies.lab.controller_process import ControllerProcess

BITS_PER_BYTE = 8
COOL_DOWN_SECONDS = 2.0
_PORTS = (5601, 5602)
_JOBS = ("queue-proof-first", "queue-proof-second")


@dataclass(frozen=True, slots=True)
class QueueProof:
    """The received rates of the flow in class 0 and of the other one, in bit/s, and their ratio."""

    high_bps: float
    low_bps: float

    @property
    def ratio(self) -> float:
        """The first rate over the second, which counts as one bit/s at least."""
        return self.high_bps / max(self.low_bps, 1.0)


@dataclass(frozen=True, slots=True)
class Stream:
    """One TCP connection that sends as fast as it can. The sending host marks it with ``dscp``, if any.

    It goes to the first address of ``dst``, or to that of ``address``.
    """

    src: str
    dst: str
    port: int
    dscp: int | None = None
    address: str | None = None


def measure(emulation: Emulation, streams: Sequence[Stream], *, seconds: float, warm_up: float = 2.0) -> list[float]:
    """Run streams at once with iperf3. Returns each one's received bit/s after the warm-up. Raises LabError.

    They send for some time longer than ``seconds``, so that a stream that starts later, or still has data in its queues
    at the end, is not counted while it is alone.
    """
    servers = [_server(emulation, stream) for stream in streams]
    try:
        _wait_for_servers(emulation, streams)
        clients = [_client(emulation, stream, seconds, warm_up) for stream in streams]
        return [_received_bps(client, seconds, seconds + warm_up + 20) for client in clients]
    finally:
        for server in servers:
            server.kill()
            server.wait()


def prove(emulation: Emulation, controller: ControllerProcess, *, seconds: float = 6.0) -> QueueProof:
    """Run the proof with a controller whose policy is fifo, so that the first job has class 0. Raises LabError."""
    receiver, *senders = emulation.hosts[:3]
    for job, port, sender in zip(_JOBS, _PORTS, senders, strict=True):
        controller.call("PUT", f"/v1/jobs/{job}", job_spec(receiver, port, sender))
        # The arrivals decide the order, so they must differ.
        time.sleep(0.05)
    try:
        wanted = dict(zip(_JOBS, (0, 1), strict=True))
        if not controller.wait(lambda: classes(controller, _JOBS) == wanted, 10):
            raise LabError(f"the jobs' classes are {classes(controller, _JOBS)}, not {wanted}")
        streams = [Stream(sender, receiver, port) for sender, port in zip(senders, _PORTS, strict=True)]
        high, low = measure(emulation, streams, seconds=seconds)
    finally:
        for job in _JOBS:
            controller.call("DELETE", f"/v1/jobs/{job}")
    return QueueProof(high, low)


def job_spec(receiver: str, port: int, *senders: str) -> dict[str, Any]:
    """Return a job that listens on a port of ``receiver`` and gets a megabyte an iteration from each sender."""
    return {
        "tasks": [
            {"role": "ps", "host": receiver, "port": port},
            *({"role": "worker", "host": sender} for sender in senders),
        ],
        "demand": [{"src": sender, "dst": receiver, "bytes": 1e6} for sender in senders],
    }


def classes(controller: ControllerProcess, jobs: Sequence[str]) -> Mapping[str, int | None]:
    """Return the classes of jobs in the plan in force."""
    planned = controller.call("GET", "/v1/plan")["classes"]
    return {job: planned.get(job) for job in jobs}


def _server(emulation: Emulation, stream: Stream) -> subprocess.Popen[Any]:
    command = ["iperf3", "-s", "-1", "-J", "-p", str(stream.port)]
    if stream.address is not None:
        command += ["-B", stream.address]
    return emulation.popen(stream.dst, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _wait_for_servers(emulation: Emulation, streams: Sequence[Stream]) -> None:
    deadline = time.monotonic() + 10
    for stream in streams:
        while _listens_at(stream) not in emulation.run(stream.dst, ["ss", "-Htln", f"sport = :{stream.port}"]):
            if time.monotonic() > deadline:
                raise LabError(f"iperf3 does not listen on port {stream.port} of {stream.dst}")
            time.sleep(0.05)


def _listens_at(stream: Stream) -> str:
    """Returns how ss writes the place where a stream's server listens."""
    if stream.address is None:
        return f":{stream.port}"
    return f"[{stream.address}]:{stream.port}" if ":" in stream.address else f"{stream.address}:{stream.port}"


def _client(emulation: Emulation, stream: Stream, seconds: float, warm_up: float) -> subprocess.Popen[Any]:
    address = stream.address or emulation.address(stream.dst)
    command = ["iperf3", "-J", "--get-server-output", "-c", address, "-p", str(stream.port)]
    # iperf3 adds the warm-up (-O) to the time (-t).
    command += ["-t", f"{seconds + COOL_DOWN_SECONDS:.0f}", "-O", f"{warm_up:.0f}"]
    if stream.dscp is not None:
        command += ["--dscp", str(stream.dscp)]
    return emulation.popen(stream.src, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _received_bps(client: subprocess.Popen[Any], seconds: float, timeout: float) -> float:
    try:
        out, complaint = client.communicate(timeout=timeout)
    except BaseException:
        client.kill()
        client.communicate()
        raise
    document = json.loads(out or "{}")
    if client.returncode or "error" in document:
        raise LabError(f"iperf3: {document.get('error') or complaint.strip() or client.returncode}")
    # The receiver reports one interval a second, counted from the end of the warm-up.
    intervals = [interval["sum"] for interval in document["server_output_json"]["intervals"]]
    counted = [
        interval
        for interval in intervals
        if not interval["omitted"] and interval["end"] < seconds + COOL_DOWN_SECONDS / 2
    ]
    if not counted:
        raise LabError("iperf3's receiver reports no interval after the warm-up")
    return (
        float(sum(interval["bytes"] for interval in counted))
        * BITS_PER_BYTE
        / float(sum(interval["seconds"] for interval in counted))
    )
