"""The control loop on the testbed, every link full: from a report that triggers a plan to the barrier reply.

Runs where there is a kernel datapath, in the box if need be, in rounds with a new controller each.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from evaluation.bench.figures import Bench, Figure
from evaluation.bench.support.loads.full_links import measure_full_links
from simulator.reports.statistics import mean_interval
from topologies.box import datapath
from topologies.emulation import emulate
from topologies.lab.controller_process import ControllerProcess
from topologies.networks import Testbed

ROUNDS = 3
REPORTS = 300
LINK_BPS = 50e6
QUEUES = 8
PERIOD_SECONDS = 1.0
LIMIT_MS = 100.0
PING_LIMIT_MS = 50.0
_MEMORY = "3G"


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the network could not be made; what it said is on stderr."""
    found = folder / "control.json"
    found.unlink(missing_ok=True)
    command = ["--memory", _MEMORY, "--", sys.executable, "-m", "evaluation.bench.dataplane.control", str(found)]
    if status := datapath.main(command):
        raise RuntimeError(f"the bench on the testbed ended with status {status}")
    rounds = json.loads(found.read_text())
    where = "uml" if datapath.choose() == "uml" else "kernel"
    p99 = [entry["report_to_rule"]["p99_seconds"] * 1e3 for entry in rounds]
    bare = [_quantile(entry["calls_ms"], 0.99) for entry in rounds]
    pings = [_quantile(entry["pings_ms"], 0.99) for entry in rounds]
    idle = [_quantile(entry["idle_pings_ms"], 0.99) for entry in rounds]
    return Bench(
        figures=(
            Figure(
                "A report that triggers a plan is in the switch's rules, every link full",
                metric="report_to_rule_p99",
                unit="ms",
                value=fmean(p99),
                baseline=fmean(bare),
                baseline_name="p99 of a bare REST call under the same load",
                ci95=mean_interval([1 - ours / floor for ours, floor in zip(p99, bare, strict=True)]),
                limit=LIMIT_MS,
            ),
            Figure(
                "A ping between hosts, every link full",
                metric="ping_p99",
                unit="ms",
                value=fmean(pings),
                baseline=fmean(idle),
                baseline_name="p99 of the same ping on idle links",
                ci95=mean_interval([1 - full / quiet for full, quiet in zip(pings, idle, strict=True)]),
                limit=PING_LIMIT_MS,
            ),
        ),
        datapath=where,
        details={"rounds": [_digest(entry) for entry in rounds]},
    )


def _digest(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "report_to_rule": entry["report_to_rule"],
        **{name: entry[name] for name in ("unchanged_plans", "unchanged_flow_mods", "streams_bps")},
        **{
            name: {"p50": _quantile(entry[name], 0.5), "p99": _quantile(entry[name], 0.99)}
            for name in ("pings_ms", "idle_pings_ms", "calls_ms")
        },
    }


def _quantile(values: list[float], share: float) -> float:
    return float(np.quantile(values, share))


def main() -> int:
    """Inside: the rounds, as a JSON list, into the file named on the command line."""
    rounds = []
    with emulate(Testbed(servers=13, link_bps=LINK_BPS, queues=QUEUES)) as testbed:
        testbed.connect_controller()
        for number in range(ROUNDS):
            sys.stderr.write(f"bench control: round {number + 1} of {ROUNDS}\n")
            controller = ControllerProcess(
                testbed,
                testbed.folder / f"bench-{number}",
                "fifo",
                classes=QUEUES - 1,
                period_seconds=PERIOD_SECONDS,
                assign="top",  # every change of the order moves all behind it
            )
            controller.start()
            try:
                controller.wait_ready()
                found = asdict(measure_full_links(testbed, controller, REPORTS))
                rounds.append(found | {"report_to_rule": found["report_to_rule"].model_dump()})
            finally:
                controller.stop()
    Path(sys.argv[1]).write_text(json.dumps(rounds))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"bench control: {error}")
