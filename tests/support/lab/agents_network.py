"""A network whose hosts have agents that order their NICs, under a controller: for jobs that the tests play."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evaluation.bench.support.waiting import wait_until
from tests.support.lab.network_helpers import CLASSES, LINK_BPS, PERIOD_SECONDS
from topologies import networks
from topologies.emulation import Emulation, emulate
from topologies.experiments.addressing import Families
from topologies.lab.agents import Agents
from topologies.lab.controller_process import ControllerProcess


@dataclass(frozen=True)
class Links:
    """All that agents need to know of an experiment."""

    link_bps: float = LINK_BPS


@contextmanager
def agents_network(
    servers: int,
    *,
    without: Collection[str] = (),
    rails: int = 1,
    addresses: Families = "ipv4",
    connect: bool = True,
    **settings: Any,
) -> Iterator[tuple[Emulation, ControllerProcess]]:
    """``settings``: of the controller, which serves jobs in the order of their arrival, a class each.

    ``without``: hosts that have no agent. ``rails`` and ``addresses`` are those of the testbed. ``connect``: switches
    connect to the controller; else they have no rules.
    """
    topo = networks.Testbed(servers=servers, link_bps=LINK_BPS, rails=rails, addresses=addresses)
    with emulate(topo) as emulation:
        if connect:
            emulation.connect_controller()
        controller = ControllerProcess(
            emulation,
            emulation.folder / "controller",
            "fifo",
            classes=CLASSES,
            period_seconds=PERIOD_SECONDS,
            assign="top",
            **settings,
        )
        controller.start()
        Agents(emulation, emulation.folder).start_reporters(controller, Links(), without=without)
        controller.wait_ready()
        wait_until(lambda: agents_report(controller, without), 30, what="a report of every agent")
        yield emulation, controller
        controller.stop()


def agents_report(controller: ControllerProcess, without: Collection[str] = ()) -> bool:
    """Whether every host's agent has reported lately."""
    return all(host.alive for host in controller.status().hosts if host.name not in without)
