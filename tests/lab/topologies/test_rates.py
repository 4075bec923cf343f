"""Every link carries its rate at both ends, no more and hardly less, and order holds at both ends."""

from __future__ import annotations

import pytest

from controller.code_points import POOL_2
from tests.support.lab.network_helpers import LINK_BPS
from tests.support.lab.prevails import prevails
from tests.support.rounds import first_that
from topologies.emulation import Emulation
from topologies.lab import queue_proof
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.queue_proof import Stream, measure

pytestmark = pytest.mark.usefixtures("controller")


def best_of(testbed: Emulation, streams: list[Stream], *, seconds: float, least: float, most: float) -> float:
    """What streams carry in all, of up to three measures the first that reaches ``least``; none may pass ``most``.

    Other work of the machine can hold a stream up for a moment. It cannot make a link faster.
    """
    for _ in range(3):
        received = sum(measure(testbed, streams, seconds=seconds))
        assert received < most
        if received > least:
            break
    return received


@pytest.mark.parametrize(("src", "dst"), [("h2", "h1"), ("h1", "h2")], ids=["push", "pull"])
def test_a_transfer_takes_bytes_over_rate(testbed: Emulation, src: str, dst: str) -> None:
    least = LINK_BPS / 1.06
    assert best_of(testbed, [Stream(src, dst, 5201)], seconds=4, least=least, most=LINK_BPS) > least


def shared(testbed: Emulation, streams: list[Stream]) -> bool:
    """Whether streams fill a link together, and no more than that."""
    # What lay in the queues at the end of the warm-up counts too.
    least = LINK_BPS / 1.08
    return best_of(testbed, streams, seconds=8, least=least, most=1.05 * LINK_BPS) > least


def test_a_fan_in_shares_the_receivers_port(testbed: Emulation) -> None:
    assert shared(testbed, [Stream(f"h{i}", "h1", 5200 + i) for i in range(2, 6)])


def test_a_fan_out_shares_the_senders_nic(testbed: Emulation) -> None:
    assert shared(testbed, [Stream("h1", f"h{i}", 5200 + i) for i in range(2, 6)])


def test_priority_holds_at_the_senders_nic(testbed: Emulation) -> None:
    marked = [Stream("h1", "h2", 5201, POOL_2.classes[0]), Stream("h1", "h3", 5202, POOL_2.classes[3])]
    assert prevails(testbed, marked, seconds=5)


def test_priority_holds_at_the_receivers_port(testbed: Emulation, controller: ControllerProcess) -> None:
    proof = first_that(
        lambda proof: proof.ratio >= 20 and proof.high_bps > 0.9 * LINK_BPS,
        lambda: queue_proof.prove(testbed, controller),
    )
    assert proof.ratio >= 20, proof
    assert proof.high_bps > 0.9 * LINK_BPS, proof
    assert proof.low_bps > 0, proof
