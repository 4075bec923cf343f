"""A network with full links, the controller that orders it, and open connections to its API."""

from __future__ import annotations

import itertools
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from controller.access.tokens.hashes import hashed, new_token
from evaluation.bench.reloads.changes import TOKEN, TURNING, Settings
from evaluation.bench.reloads.streams import Flow, Host, Streams, full_links
from evaluation.bench.support.api_client import HOST, OPERATOR, Controller
from evaluation.bench.support.loads.rest_load import Caller, Tally, calling
from evaluation.bench.support.waiting import wait_until
from topologies import limits
from topologies.box.processors import at_once
from topologies.emulation import OPENFLOW_PORT, Emulation, emulate, inventory
from topologies.networks import LeafSpine
from topologies.openvswitch import DATABASE, vsctl

LINK_BPS = 10e6
LEAVES = 3
SEGMENTS_SHARE, DATAGRAMS_SHARE = 0.60, 0.25
"""The shares of a link that numbered packets of a job, and of none, take. The answers of the TCP stream need some."""
NUMBERED_PORT, TCP_PORT, NO_JOBS_PORT = 5000, 5001, 5900
QUEUE_PACKETS = 1000
"""A queue of a switch holds this many packets, as Linux's own do. What the links do not take at once is not lost."""
GATE_SECONDS = 20
"""A busy machine may renew the gate late. Then jobs' packets would wait in the queue of all other traffic."""
READY_SECONDS = 90.0
_REPORT_PAUSE_SECONDS = 0.1
_POLL_SECONDS = 2


@dataclass
class Yard:
    """The network, the controller, and a token that the tokens file has while a change says so.

    ``in_force`` are the settings that the controller has.
    """

    network: Emulation
    controller: Controller
    tokens: Path
    token: str
    in_force: Settings
    other_hash: str = field(default_factory=lambda: hashed(new_token()))

    def write_tokens(self, *, with_ours: bool) -> None:
        """Write the tokens file."""
        entries = {"bench-stays": {"role": "viewer", "hash": self.other_hash}}
        if with_ours:
            entries[TOKEN] = {"role": "viewer", "hash": hashed(self.token)}
        self.tokens.write_text(yaml.safe_dump(entries))

    @contextmanager
    def full(self) -> Iterator[Streams]:
        """Fill the links between h1 and h3 until the block ends."""

        def start(host: str, command: list[str]) -> subprocess.Popen[str]:
            return self.network.popen(host, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        one, other = (Host(name, self.network.address(name)) for name in ("h1", "h3"))
        flows = {
            NUMBERED_PORT: Flow("segments", SEGMENTS_SHARE * LINK_BPS),
            NO_JOBS_PORT: Flow("datagrams", DATAGRAMS_SHARE * LINK_BPS),
        }
        # The first packets would otherwise wait for the other's hardware address, in a short queue.
        self.network.run(one.name, ["ping", "-c", "3", "-i", "0.2", other.address])
        with full_links(start, one, other, flows, TCP_PORT) as streams:
            yield streams


@contextmanager
def yard(scratch: Path) -> Iterator[Yard]:
    """Three leaves with two hosts each below one spine, and a controller that has four jobs and is ready."""
    tokens = scratch / "tokens.yaml"
    with emulate(LeafSpine(leaves=LEAVES, spines=1, servers_per_leaf=2, link_bps=LINK_BPS)) as network:
        controller = Controller(
            scratch,
            api={"tokens_file": str(tokens)},
            openflow={"port": OPENFLOW_PORT},
            ovsdb=DATABASE,
            hosts=list(map(dict, inventory(network))),
            links=[asdict(cable) for cable in network.cables()],
            forwarding="paths",
            journal=str(scratch / "journal.sqlite"),
            gate_seconds=GATE_SECONDS,
        )
        made = Yard(network, controller, tokens, new_token(), controller.settings)
        made.write_tokens(with_ours=False)
        _lengthen_queues(network)
        network.connect_controller()
        try:
            controller.start(wrapper=at_once())  # a real controller has a machine of its own
            _register(controller)
            wait_until(lambda: _is_ready(controller, network), READY_SECONDS, what="readiness", every=0.2)
            yield made
        finally:
            controller.stop()


@contextmanager
def open_connections(port: int) -> Iterator[tuple[Tally, Tally]]:
    """Until the block ends, an agent reports, and another waits for its marks, each on one connection to the API."""
    callers = (Caller(port, HOST), Caller(port, OPERATOR))
    with calling((callers[0], _report), (callers[1], _wait_for_marks)):
        yield callers[0].tally, callers[1].tally


def _lengthen_queues(network: Emulation) -> None:
    """Let each queue that is made from now on be long, and drop those that there are, because they keep theirs."""
    ports = network.port_rates()
    limits.bound_queues(ports, QUEUE_PACKETS)
    vsctl(*(word for port in ports for word in ("--", "clear", "port", port, "qos")))


def _report(caller: Caller, ended: threading.Event) -> None:
    session = f"load-{time.monotonic()}"
    for number in itertools.count(1):
        now = time.time()
        points = [{"iteration": number, "time": now, "metric": 1 / number}]
        body = {"session": session, "seq": number, "sent_at": now, "jobs": [{"job": "numbered", "points": points}]}
        caller.call("POST", "/v1/hosts/h1/reports", body)
        if ended.wait(_REPORT_PAUSE_SECONDS):
            return


def _wait_for_marks(caller: Caller, ended: threading.Event) -> None:
    tag = ""
    while not ended.is_set():
        known = {"If-None-Match": tag} if tag else {}
        headers = caller.call("GET", f"/v1/hosts/h3/plan?wait={_POLL_SECONDS}", **known)
        tag = str(headers.get("ETag", "")) if headers is not None else ""


def _register(controller: Controller) -> None:
    """Register a job of numbered packets, one of TCP the other way, and two on leaf 3, which share their ports."""

    def put(job: str, arrival: float, demand: tuple[str, str, float], **traffic: list[dict[str, Any]]) -> None:
        spec = {"arrival": arrival, "demand": [dict(zip(("src", "dst", "bytes"), demand, strict=True))], **traffic}
        answer = controller.call("PUT", f"/v1/jobs/{job}", spec)
        assert answer.ok, answer.text

    # By arrival and by what is left to send, whatever is reported, the two jobs of the full links go first.
    put("numbered", 1.0, ("h1", "h3", 1e2), flows=[{"src": "h1", "dst": "h3", "dst_port": NUMBERED_PORT}])
    tasks: list[dict[str, Any]] = [{"role": "ps", "host": "h1", "port": TCP_PORT}, {"role": "worker", "host": "h3"}]
    put("tcp", 2.0, ("h3", "h1", 1e6), tasks=tasks)
    # Of the others the first has arrived sooner, and the second has less left to send.
    for arrival, (job, port), left in zip((3.0, 4.0), TURNING.items(), (1e10, 1e9), strict=True):
        put(job, arrival, ("h5", "h6", left), flows=[{"src": "h5", "dst": "h6", "dst_port": port}])


def _is_ready(controller: Controller, network: Emulation) -> bool:
    status = controller.call("GET", "/v1/status").json()
    ready = sum(each["ready"] for each in status["switches"])
    return bool(status["epoch"] > 0 and ready == len(network.bridges))
