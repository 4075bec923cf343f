"""Real PyTorch trainings on the emulated network under one policy after the other.

Where the kernel has no Open vSwitch datapath the lab runs itself again inside a User-Mode Linux box.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from evaluation.pytorch.fork_server import launch, torch_version
from evaluation.pytorch.lab import Here, TorchLab
from evaluation.real.arm import run_arm
from evaluation.real.request import RealRequest, RealResult
from topologies.emulation import emulate
from topologies.fork_server import ForkServer
from topologies.networks import Testbed

MEMORY = "6G"
RESULT = "real.json"
_LAUNCH_SECONDS = 300.0


def _run_here(request: RealRequest, here: Here, results: Path) -> RealResult:
    version = torch_version()
    topo = Testbed(servers=request.hosts, link_bps=request.link_bps, queues=request.queues, datapath=here.kind)
    with emulate(topo, datapath=here.kind) as emulation:
        if here.kind == "user":
            emulation.use_own_queues(request.queues - 1)
        emulation.connect_controller()
        fork_server = ForkServer(launch(emulation, "evaluation.real.fork_server"), _LAUNCH_SECONDS)
        try:
            arms = tuple(
                run_arm(emulation, request, choice, fork_server, results=results / choice.name)
                for choice in request.policies
            )
        finally:
            fork_server.close()
    return RealResult(here.datapath, request.seed, version, len(os.sched_getaffinity(0)), arms)


LAB = TorchLab("evaluation.real.lab", MEMORY, RESULT, RealRequest, RealResult, _run_here)


if __name__ == "__main__":
    sys.exit(LAB.main())
