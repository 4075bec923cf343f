"""``trainyard sim``: simulate policies on a coflow trace or on a made workload.

Exit status: 0 done, 1 failed, 2 wrong input. Results are written at the end, whole or not at all.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller.model import MAX_CLASSES, MAX_OFFLINE_CLASSES
from simulator.sweep.values import (
    MOST_SEED,
    architectures,
    at_least_zero,
    numbers,
    positive,
    rate,
    seed_list,
    share,
    span,
    synchronisation,
    whole,
)
from simulator.workloads.catalogue import NAMED
from simulator.workloads.coflow_trace import DEFAULT_PORT_RATE_BPS
from simulator.workloads.transfers import ARCHITECTURES

if TYPE_CHECKING:
    from simulator.reports.measures import Measures
    from simulator.reports.results import Results
    from simulator.sweep.request import Request
    from simulator.sweep.sweep import Run, Task

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130


def add_command(commands: Any) -> None:
    """Add ``sim`` to ``trainyard``'s subcommands (argparse's subparsers)."""
    parser = commands.add_parser("sim", help="simulate policies on a coflow trace or on a workload of jobs")
    add_options(parser)
    parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.add_argument(
        "--policy", action="append", required=True, metavar="P", help="a policy, or all; may be repeated"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="P.KEY=VALUE",
        help="an option of a policy, such as jpas.variant=gain; may be repeated",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--trace", type=Path, metavar="FILE", help="a coflow trace (coflow-benchmark format); -: the standard input"
    )
    what.add_argument(
        "--workload", metavar="NAME", help="; ".join(f"{name}: {text}" for name, (_, text) in NAMED.items())
    )
    network = parser.add_argument_group("network and controller")
    network.add_argument(
        "--port-rate", type=rate, default=DEFAULT_PORT_RATE_BPS, metavar="BPS",
        help="rate of every port each way, bit/s (default 1e9)",
    )  # fmt: skip
    network.add_argument(
        "--network", type=Path, metavar="FILE",
        help="a graph of hosts and switches (.graphml, .gml, .json) instead of the hose model",
    )  # fmt: skip
    network.add_argument(
        "--ideal", action="store_true", help="each rank has its own class and control takes no time (the default)"
    )
    network.add_argument(
        "--classes", type=whole(1, MAX_OFFLINE_CLASSES), metavar="K",
        help=f"at most K classes; a switch has up to {MAX_CLASSES}, here there are up to {MAX_OFFLINE_CLASSES}",
    )  # fmt: skip
    network.add_argument(
        "--assign", choices=("layered", "top"), default="layered", help="how ranks become classes; default: layered"
    )
    network.add_argument("--period", type=positive, metavar="T", help="plan every T seconds, as the controller does")
    network.add_argument(
        "--delay", type=at_least_zero, default=0.0, metavar="S",
        help="seconds from what makes a plan to the plan in force (default 0)",
    )  # fmt: skip
    network.add_argument(
        "--rates",
        choices=("maxmin", "madd"),
        default="maxmin",
        help="how flows of a rank share: maxmin as TCP, or madd as Varys; default: maxmin",
    )
    clock = network.add_mutually_exclusive_group()
    clock.add_argument(
        "--exact",
        action="store_true",
        help="each flow completes at its exact time (the default, except for huge traces)",
    )
    clock.add_argument("--quantum", type=positive, metavar="S", help="gather completions to multiples of S seconds")
    jobs = parser.add_argument_group("workload")
    jobs.add_argument("--offline", action="store_true", help="all arrivals at time 0")
    jobs.add_argument("--hosts", type=whole(1), metavar="N", help="how many hosts the network has")
    jobs.add_argument("--jobs", type=whole(1), metavar="N", help="how many training jobs, or tuning studies")
    jobs.add_argument(
        "--load",
        type=numbers(share),
        metavar="L[,L...]",
        help="the load of the average port, from 0 to 1; several values make a sweep",
    )
    seeds = jobs.add_mutually_exclusive_group()
    seeds.add_argument(
        "--seed", type=whole(0, MOST_SEED), metavar="S", help="the seed of all random numbers (default 1)"
    )
    seeds.add_argument(
        "--seeds",
        type=seed_list,
        metavar="N or S,S...",
        help="run seeds 1 to N, or the listed seeds, and give intervals",
    )
    jobs.add_argument("--workers", type=span, metavar="N or A-B", help="how many workers a job has")
    jobs.add_argument(
        "--iterations",
        type=span,
        metavar="N or A-B",
        help="how many iterations a job has; of tuning: in the first and the last rung",
    )
    jobs.add_argument(
        "--architecture",
        type=architectures,
        metavar="A[,A...]",
        help=f"how workers exchange gradients: {', '.join(ARCHITECTURES)}",
    )
    jobs.add_argument(
        "--sync",
        type=synchronisation,
        metavar="MODE",
        help="how workers synchronise: bsp, ssp:S (a lead of S iterations) or asp, each also with +sasp",
    )
    jobs.add_argument(
        "--eta", type=whole(2), metavar="N", help="of tuning: one of N trials goes on to the next rung (default 3)"
    )
    sweep = parser.add_argument_group("running it")
    sweep.add_argument(
        "--processes",
        type=whole(1),
        default=None,
        metavar="N",
        help="how many simulations run at once; default: one for each core",
    )
    sweep.add_argument("--ray", metavar="ADDRESS", help="run on this Ray cluster instead (needs trainyard[ray])")
    told = parser.add_argument_group("output")
    told.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    told.add_argument("--detail", action="store_true", help="show every measure, also for a trace")
    told.add_argument(
        "--baseline", metavar="P", help="the policy that others are compared with (default: fair, or else the first)"
    )
    told.add_argument("--html", type=Path, metavar="FILE", help="write a report, complete in one file")
    told.add_argument("--plots", type=Path, metavar="FOLDER", help="write the plots as PNG files")


def run(options: argparse.Namespace) -> int:
    """The command: 0 done, 1 failed, 2 wrong input."""
    # The engine and all else are loaded by who simulates only: every other command loads this module too.
    from controller.planner import PlanError
    from controller.policies.registry import PolicyError
    from simulator.errors import InputError
    from simulator.sweep.request import request
    from simulator.sweep.sweep import SweepError

    try:
        asked = request(options)
        found = simulate(asked, options)
        tell(asked, found, options)
    except (InputError, PolicyError) as error:
        return _fail(str(error), WRONG_INPUT)
    except BrokenPipeError:
        raise  # whoever reads has seen enough: the command's own end
    except (SweepError, PlanError, OSError) as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return _fail("stopped; nothing was written", INTERRUPTED)
    return 0


def simulate(asked: Request, options: argparse.Namespace) -> list[Run]:
    """Run all tasks, with bars on stderr where that is a terminal."""
    from simulator.compiling import prepare
    from simulator.sweep import ray_sweep, sweep
    from simulator.sweep.bars import Bars

    prepare(_say)
    names = [_task_name(task) for task in asked.tasks]
    with Bars(names) as bars:
        if options.ray is not None:
            return ray_sweep.run_all(asked.tasks, address=options.ray, progress=bars.show)
        processes = options.processes or os.cpu_count() or 1
        return sweep.run_all(asked.tasks, processes=processes, progress=bars.show)


def tell(asked: Request, runs: list[Run], options: argparse.Namespace) -> None:
    """Make everything first, then write files, then stdout."""
    results = _results(asked, runs)
    if options.html is not None or options.plots is not None:
        from simulator.reports import files, html, plots

        made: dict[Path, bytes] = {}
        if options.plots is not None:
            made |= {options.plots / name: content for name, content in plots.pictures(results).items()}
        if options.html is not None:
            made[options.html] = html.page(results).encode()
        files.write_all(made)
    if options.json:
        from simulator.reports.document import dumps

        sys.stdout.write(dumps(results.document()))
    else:
        from rich.console import Console

        from simulator.reports.table import tables

        Console().print(*tables(results))


def _results(asked: Request, runs: Sequence[Run]) -> Results:
    from simulator.reports.results import Results

    grouped: dict[float | None, dict[str, list[Measures]]] = {}
    for run in runs:
        grouped.setdefault(run.task.load, {}).setdefault(run.task.policy, []).append(run.measures)
    given = sys.argv[1:]
    return Results(
        title=asked.title,
        command=shlex.join(["trainyard", *given]) if given[:1] == ["sim"] else "trainyard sim, called by a program",
        seeds=asked.seeds,
        seeded=asked.loads != (None,),
        baseline=asked.baseline,
        detail=asked.detail,
        runs=grouped,
    )


def _task_name(task: Task) -> str:
    parts = [task.policy]
    parts += [f"load {task.load:g}"] if task.load is not None else []
    parts += [f"seed {task.seed}"] if task.seed is not None else []
    return ", ".join(parts)


def _fail(message: str, status: int) -> int:
    _say(message or "failed")
    return status


def _say(message: str) -> None:
    sys.stderr.write("".join(f"sim: {line}\n" for line in message.splitlines()))
    sys.stderr.flush()
