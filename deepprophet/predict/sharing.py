"""What workers on one machine take from each other. Pure."""

from __future__ import annotations

from deepprophet.costs.calibration import Calibration
from deepprophet.predict.network import NetworkSpec, Placement


def sharing(network: NetworkSpec, placement: Placement, known: Calibration) -> tuple[float, float, bool]:
    """Of the machine with the most workers a core: how much longer they take, busy neighbours, and whether it is
    full.
    """
    stretch, neighbours, crowded = 1.0, 0.0, False
    machines: dict[str, list[str]] = {}
    by_name = network.by_name()
    for host in placement.workers:
        machines.setdefault(by_name[host].machine or host, []).append(host)
    for hosts in machines.values():
        own = [cores for name in hosts if (cores := by_name[name].cores) is not None]
        cores = max(own, default=known.provenance.cores)
        if known.provenance.kind != "cpu":
            # A worker an accelerator, and as many accelerators as workers: nothing is shared.
            continue
        busy = len(hosts) * known.provenance.threads
        stretch = max(stretch, busy / cores)
        neighbours = max(neighbours, min(len(hosts), max(cores // known.provenance.threads, 1)) - 1.0)
        crowded = crowded or busy >= cores
    return stretch, neighbours, crowded
