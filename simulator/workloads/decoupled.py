"""SaSP as the fluid model can show it: computing and sending of a worker overlap, layer by layer, front layers first.

[ours] A job's model is cut into ``LAYERS`` parts of equal bytes, which are its chunks: a part that has begun is sent to
its end. A worker's forward pass takes a third of its computing, its backward pass two. A part leaves when the backward
pass has freed it; forward passes wait part by part for what is ``lead`` iterations and one before. Of the parts that
wait to go up or down one worker's link the oldest iteration's goes first, then the front. What a server sends to
different workers shares its link evenly: stragglers first is not shown here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.model import Demand
from simulator.jobs import Await, Compute, Step, Transfer
from simulator.workloads.transfers import Architecture, ring, tree_down, tree_up

LAYERS = 4
FORWARD_SHARE = 1 / 3

Lanes = tuple[tuple[Step, ...], ...]


def decoupled_lanes(
    architecture: Architecture,
    hosts: Sequence[str],
    model_bytes: float,
    computes: Sequence[float],
    *,
    lead: int,
    barrier: bool,
) -> Lanes:
    """A lane for each worker's computing; then, for each worker and layer (all-reduce: for each layer), one for every
    transfer.

    ``barrier``: an update is finished when all workers have sent theirs (BSP, SSP; all-reduce always). The first
    host is a ps job's server.
    """
    if architecture == "ps":
        return _with_server(hosts, model_bytes, computes, lead, barrier)
    count = len(hosts)
    kinds = len(_all_reduce(architecture, hosts, 1.0))

    def lane_of(layer: int, kind: int) -> int:
        return count + layer * kinds + kind

    lanes: list[tuple[Step, ...]] = []
    for worker in range(count):
        needs = [Await(lane_of(layer, kinds - 1), 1 if kinds > 1 else count, 1 + lead) for layer in range(LAYERS)]
        lanes.append(_computing(computes[worker], needs))
    for layer in range(LAYERS):
        freed: tuple[Step, ...] = tuple(Await(worker, _freed_at(layer)) for worker in range(count))
        for kind, transfer in enumerate(_all_reduce(architecture, hosts, model_bytes / LAYERS)):
            before = (Await(lane_of(layer, kind - 1), count),) if kind else freed
            lanes.append((*before, replace(transfer, turn=kind, urgency=layer)))
    return tuple(lanes)


def _with_server(
    hosts: Sequence[str], model_bytes: float, computes: Sequence[float], lead: int, barrier: bool
) -> Lanes:
    server, *workers = hosts
    count, size = len(workers), model_bytes / LAYERS

    def push_lane(worker: int, layer: int) -> int:
        return count + 2 * (worker * LAYERS + layer)

    computing: list[tuple[Step, ...]] = []
    sending: list[tuple[Step, ...]] = []
    for number, (worker, seconds) in enumerate(zip(workers, computes, strict=True)):
        needs = []
        for layer in range(LAYERS):
            up, down = Demand(worker, server, size), Demand(server, worker, size)
            sources = range(count) if barrier else (number,)
            pushed = tuple(Await(push_lane(source, layer), 1) for source in sources)
            sending.append((Await(number, _freed_at(layer)), Transfer((up,), turn=2 * number, urgency=layer)))
            sending.append((*pushed, Transfer((down,), turn=2 * number + 1, urgency=layer)))
            needs.append(Await(push_lane(number, layer) + 1, len(pushed), 1 + lead))
        computing.append(_computing(seconds, needs))
    return (*computing, *sending)


def _computing(seconds: float, needs: Sequence[Await]) -> tuple[Step, ...]:
    """Forward through the layers, each when it may, and back."""
    forward = Compute(seconds * FORWARD_SHARE / LAYERS)
    backward = Compute(seconds * (1 - FORWARD_SHARE) / LAYERS)
    return (*(step for need in needs for step in (need, forward)), *([backward] * LAYERS))


def _freed_at(layer: int) -> int:
    """The step of a worker's computing that frees a layer's gradients."""
    return 2 * LAYERS + (LAYERS - 1 - layer)


def _all_reduce(architecture: Architecture, hosts: Sequence[str], size: float) -> tuple[Transfer, ...]:
    """The transfers of one layer of ``size`` bytes, one after the other."""
    return (ring(hosts, size),) if architecture == "ring" else (tree_up(hosts, size), tree_down(hosts, size))
