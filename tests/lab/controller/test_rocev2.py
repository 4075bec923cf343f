"""Two streams of generated RoCEv2 packets through one port: the plan's order holds, and a new one is followed.

Nothing runs on the hosts but the senders, which are told nothing after their start, as network interfaces with RDMA.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.lab.network_helpers import CLASSES, PERIOD_SECONDS
from tests.support.lab.rocev2_streams import INTERVAL_SECONDS, Look, Streams
from tests.support.rounds import first_that
from topologies import networks
from topologies.emulation import Emulation, emulate
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.queue_proof import classes, job_spec
from topologies.lab.use.meters import Meter, links_of
from topologies.rocev2.send import NIC_DSCP

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

LINK_BPS = 10e6
"""The link is slow, because each packet costs a processor the same, whatever its size."""
RECEIVER = "h1"
SENDERS = {"first": "h2", "second": "h3"}
RATIO = 20
SECONDS = 4.0
LATE_SECONDS = 0.3
"""A shared processor may be late by so much, beside the two intervals of the sink."""


@dataclass
class Yard:
    """Three hosts on a switch, and the controller."""

    emulation: Emulation
    controller: ControllerProcess

    def put(self, job: str, weight: float) -> dict[str, Any]:
        """Put a job whose RoCEv2 goes from its sender to the receiver, and return what the controller says of it."""
        pair = {"src": SENDERS[job], "dst": RECEIVER}
        spec = {"flows": [pair | {"protocol": "rocev2"}], "demand": [pair | {"bytes": 1e6}], "weight": weight}
        answer: dict[str, Any] = self.controller.call("PUT", f"/v1/jobs/{job}", spec)
        return answer

    def wait_for(self, *order: str) -> None:
        wanted = {job: number for number, job in enumerate(order)}
        wait_until(lambda: classes(self.controller, order) == wanted, what=f"the order {order}")


@pytest.fixture(params=["flows", "dscp"])
def yard(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Yard]:
    stage.clear()
    with emulate(networks.Testbed(servers=3, link_bps=LINK_BPS)) as emulation:
        emulation.connect_controller()
        controller = ControllerProcess(
            emulation,
            emulation.folder / "controller",
            "sincronia",
            classes=CLASSES,
            period_seconds=PERIOD_SECONDS,
            assign="top",
            enforce=["switches"],
            identity=request.param,
        )
        controller.start()
        controller.wait_ready()
        yield Yard(emulation, controller)
        controller.stop()


def test_the_order_of_two_streams_holds_and_is_changed_without_touching_the_hosts(yard: Yard) -> None:
    weights = {"first": 4.0, "second": 1.0}
    # Where jobs have no DSCPs of their own, switches know them by their hosts, whatever DSCP an interface gives them.
    dscps = {SENDERS[job]: yard.put(job, weight).get("dscp") or NIC_DSCP for job, weight in weights.items()}
    # A third job has its TCP between the same hosts, so that hosts alone do not say whose a packet is.
    yard.controller.call("PUT", "/v1/jobs/beside", job_spec(RECEIVER, 5301, *SENDERS.values()) | {"weight": 1e-3})
    yard.wait_for("first", "second", "beside")
    first, second = SENDERS.values()
    with Streams(yard.emulation, RECEIVER) as streams:
        senders = [streams.send(host, rate_bps=3 * LINK_BPS, dscp=dscp) for host, dscp in dscps.items()]
        wait_until(lambda: streams.looks()[-1].by_host.keys() == {first, second}, what="packets of both")
        pressing = Meter(links_of(yard.emulation), LINK_BPS)
        time.sleep(1.0)  # the queues fill
        measured = partial(streams.measure, SECONDS)
        came = first_that(lambda came: came[first] >= RATIO * came[second], measured)
        assert came[first] >= RATIO * came[second], came

        def seconds_until_followed() -> float:
            yard.put("second", weights["second"])
            yard.wait_for("first", "second", "beside")
            begin = time.monotonic()
            wait_until(lambda: overtaken(streams.looks(), first, second, begin), what="the order before")
            asked = time.monotonic()
            yard.put("second", 16.0)
            yard.wait_for("second", "first", "beside")
            followed = wait_until(lambda: overtaken(streams.looks(), second, first, asked), what="the new order")
            return followed - asked

        most = PERIOD_SECONDS + 2 * INTERVAL_SECONDS + LATE_SECONDS
        took = first_that(lambda took: took <= most, seconds_until_followed)
        assert took <= most
        came = first_that(lambda came: came[second] >= RATIO * came[first], measured)
        assert came[second] >= RATIO * came[first], came

        pressed = {link.host: link.egress_share for link in pressing.use().links}
        assert all(sender.poll() is None for sender in senders)
        last = streams.looks()[-1]
    # Each sent more than the half of the receiver's link that it would have got without an order.
    assert min(pressed[host] for host in SENDERS.values()) > 0.5, pressed
    for host, dscp in dscps.items():
        assert last.by_host[host]["damaged"] == 0
        assert last.by_host[host]["dscps"].keys() == {str(dscp)}, "it stays, as that of a lossless class has to"


def overtaken(looks: list[Look], leader: str, other: str, since: float) -> float | None:
    """Returns when more came from the leader than from the other for the first time since a moment; None: not yet."""
    for before, after in pairwise(looks):
        if before.time >= since:
            gains = {host: after.bytes_of(host) - before.bytes_of(host) for host in (leader, other)}
            if gains[leader] > gains[other]:
                return after.time
    return None
