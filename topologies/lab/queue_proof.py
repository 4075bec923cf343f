"""Proof that the order holds on the wire: two registered jobs' TCP flows into one port, one class apart.

Through the real pipeline: the controller classifies, the switch's queues decide. Both flows together want twice
what the receiver's link carries.
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
    """What arrived of the flow of class 0 and of the other's, in bit/s, and the ratio of the two."""

    high_bps: float
    low_bps: float

    @property
    def ratio(self) -> float:
        """How many times more the first got; as if the second had got one bit/s at least."""
        return self.high_bps / max(self.low_bps, 1.0)


@dataclass(frozen=True, slots=True)
class Stream:
    """One TCP connection that sends as fast as it may; ``dscp`` is what the sending host marks (None: nothing)."""

    src: str
    dst: str
    port: int
    dscp: int | None = None


def measure(emulation: Emulation, streams: Sequence[Stream], *, seconds: float, warm_up: float = 2.0) -> list[float]:
    """Run streams at once (iperf3); each one's received bit/s in so many seconds after the warm-up. Raises LabError.

    They send for some time longer, so that who starts later, or still has much in its queues at the end, counts for
    nothing while it is alone.
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
    """The proof, with a controller whose policy is fifo: the first of two jobs has class 0. Raises LabError."""
    receiver, *senders = emulation.hosts[:3]
    for job, port, sender in zip(_JOBS, _PORTS, senders, strict=True):
        controller.call("PUT", f"/v1/jobs/{job}", job_spec(receiver, port, sender))
        # Arrivals decide the order.
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
    """A job that listens on one port of ``receiver`` and gets a megabyte an iteration from each sender."""
    return {
        "tasks": [
            {"role": "ps", "host": receiver, "port": port},
            *({"role": "worker", "host": sender} for sender in senders),
        ],
        "demand": [{"src": sender, "dst": receiver, "bytes": 1e6} for sender in senders],
    }


def classes(controller: ControllerProcess, jobs: Sequence[str]) -> Mapping[str, int | None]:
    """The classes that jobs have in the plan in force."""
    found = controller.call("GET", "/v1/plan")["classes"]
    return {job: found.get(job) for job in jobs}


def _server(emulation: Emulation, stream: Stream) -> subprocess.Popen[Any]:
    command = ["iperf3", "-s", "-1", "-J", "-p", str(stream.port)]
    return emulation.popen(stream.dst, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _wait_for_servers(emulation: Emulation, streams: Sequence[Stream]) -> None:
    deadline = time.monotonic() + 10
    for stream in streams:
        while not emulation.run(stream.dst, ["ss", "-Htln", f"sport = :{stream.port}"]).strip():
            if time.monotonic() > deadline:
                raise LabError(f"iperf3 does not listen on port {stream.port} of {stream.dst}")
            time.sleep(0.05)


def _client(emulation: Emulation, stream: Stream, seconds: float, warm_up: float) -> subprocess.Popen[Any]:
    command = ["iperf3", "-J", "--get-server-output", "-c", emulation.address(stream.dst), "-p", str(stream.port)]
    # The warm-up comes before the time.
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
    # One a second, which the receiver counts from the warm-up's end.
    intervals = [interval["sum"] for interval in document["server_output_json"]["intervals"]]
    counted = [one for one in intervals if not one["omitted"] and one["end"] < seconds + COOL_DOWN_SECONDS / 2]
    if not counted:
        raise LabError("iperf3's receiver tells nothing of the time after the warm-up")
    return float(sum(one["bytes"] for one in counted)) * BITS_PER_BYTE / float(sum(one["seconds"] for one in counted))
