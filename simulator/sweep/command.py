"""``trainyard sim``: simulate policies on a coflow trace, a generated workload, or the recording of a cluster.

Exit status: 0 done, 1 failed, 2 wrong input. Results are written at the end, whole or not at all.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller.model import MAX_CLASSES, MAX_OFFLINE_CLASSES
from simulator.sweep.values import (
    MAX_SEED,
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
    from simulator.recorded.estimate import Estimate
    from simulator.reports.measures import Measures
    from simulator.reports.results import Results
    from simulator.sweep.request import Request
    from simulator.sweep.sweep import Run, Task

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130


def add_command(commands: Any) -> None:
    """Add ``sim`` to ``trainyard``'s subcommands (argparse's subparsers)."""
    parser = commands.add_parser("sim", help="simulate policies on a coflow trace, a workload of jobs or a recording")
    add_options(parser)
    parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.add_argument(
        "--policy",
        action="append",
        required=True,
        metavar="P",
        help="a policy; the option may be given several times; all: every policy",
    )
    parser.add_argument(
        "--option", action="append", default=[], metavar="P.KEY=VALUE", help="an option of a policy: jpas.variant=gain"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--trace", type=Path, metavar="FILE", help="a coflow trace (coflow-benchmark format); -: the standard input"
    )
    what.add_argument(
        "--events", type=Path, metavar="FILE",
        help="a recording of a cluster: the events.jsonl of the lab, or what trainyard events --json printed",
    )  # fmt: skip
    what.add_argument(
        "--workload", metavar="NAME", help="; ".join(f"{name}: {text}" for name, (_, text) in NAMED.items())
    )
    parser.add_argument(
        "--followed", metavar="P",
        help="of --events: the policy that the network followed, where it is another than the recording says",
    )  # fmt: skip
    network = parser.add_argument_group("network and controller")
    network.add_argument(
        "--port-rate", type=rate, default=DEFAULT_PORT_RATE_BPS, metavar="BPS",
        help="rate of every port each way, bit/s (default 1e9); of --events: of those whose rate was not recorded",
    )  # fmt: skip
    network.add_argument(
        "--network", type=Path, metavar="FILE",
        help="a graph of hosts and switches (.graphml, .gml, .json) instead of the hose model",
    )  # fmt: skip
    network.add_argument(
        "--ideal", action="store_true", help="a class a rank and instant control, which is the default"
    )
    network.add_argument(
        "--classes", type=whole(1, MAX_OFFLINE_CLASSES), metavar="K",
        help=f"at most K classes; a switch has up to {MAX_CLASSES}, here there are up to {MAX_OFFLINE_CLASSES}",
    )  # fmt: skip
    network.add_argument("--assign", choices=("layered", "top"), default="layered", help="how ranks become classes")
    network.add_argument("--period", type=positive, metavar="T", help="plan every T seconds, as the controller does")
    network.add_argument(
        "--delay", type=at_least_zero, default=0.0, metavar="S",
        help="seconds from what makes a plan to the plan in force (default 0)",
    )  # fmt: skip
    network.add_argument(
        "--rates", choices=("maxmin", "madd"), default="maxmin", help="inside a rank: TCP's, or Varys's"
    )
    clock = network.add_mutually_exclusive_group()
    clock.add_argument(
        "--exact", action="store_true", help="every completion at its own time (the default but for huge traces)"
    )
    clock.add_argument("--quantum", type=positive, metavar="S", help="gather completions to multiples of S seconds")
    jobs = parser.add_argument_group("workload")
    jobs.add_argument("--offline", action="store_true", help="all arrivals at time 0")
    jobs.add_argument("--hosts", type=whole(1), metavar="N", help="hosts of the network")
    jobs.add_argument("--jobs", type=whole(1), metavar="N", help="training jobs, or tuning studies")
    jobs.add_argument(
        "--load", type=numbers(share), metavar="L[,L...]", help="load of the mean port, 0 to 1; several values: a sweep"
    )
    seeds = jobs.add_mutually_exclusive_group()
    seeds.add_argument(
        "--seed", type=whole(0, MAX_SEED), metavar="S", help="what everything random comes from (default 1)"
    )
    seeds.add_argument(
        "--seeds",
        type=seed_list,
        metavar="N or S,S...",
        help="the seeds 1 to N, or the seeds given; results have intervals",
    )
    jobs.add_argument("--workers", type=span, metavar="N or A-B", help="number of workers of a job")
    jobs.add_argument(
        "--iterations",
        type=span,
        metavar="N or A-B",
        help="iterations of a job; of tuning: those of the first and the last rung",
    )
    jobs.add_argument("--architecture", type=architectures, metavar="A[,A...]", help=", ".join(ARCHITECTURES))
    jobs.add_argument(
        "--sync",
        type=synchronisation,
        metavar="MODE",
        help="bsp, ssp:S (lead of S iterations) or asp, each also with +sasp",
    )
    jobs.add_argument("--eta", type=whole(2), metavar="N", help="of tuning: one in N trials goes on (default 3)")
    sweep = parser.add_argument_group("running it")
    sweep.add_argument(
        "--processes",
        type=whole(1),
        default=None,
        metavar="N",
        help="simulations that run at once (default: one a core)",
    )
    sweep.add_argument("--ray", metavar="ADDRESS", help="run on this Ray cluster instead (needs trainyard[ray])")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="one JSON document on stdout")
    output.add_argument("--detail", action="store_true", help="every measure, for a trace too")
    output.add_argument(
        "--baseline", metavar="P", help="policy that the others are compared with (default fair, else the first)"
    )
    output.add_argument("--html", type=Path, metavar="FILE", help="write a report, complete in one file")
    output.add_argument("--plots", type=Path, metavar="FOLDER", help="write the plots as PNG files")


def run(options: argparse.Namespace) -> int:
    """The command: 0 done, 1 failed, 2 wrong input."""
    # The engine and all else are loaded by who simulates only: every other command loads this module too.
    from controller.planner import PlanError
    from controller.policies.registry import PolicyError
    from simulator.errors import InputError
    from simulator.sweep.request import request
    from simulator.sweep.sweep import SweepError

    try:
        wanted = with_fit(request(options))
        runs = simulate(wanted, options)
        tell(wanted, runs, options)
    except (InputError, PolicyError) as error:
        return _fail(str(error), WRONG_INPUT)
    except BrokenPipeError:
        raise  # whoever reads has seen enough: the command's own end
    except (SweepError, PlanError, OSError) as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return _fail("stopped; nothing was written", INTERRUPTED)
    return 0


def with_fit(wanted: Request) -> Request:
    """Returns the request with what only a simulation shows of a recording, with a bar on stderr at a terminal."""
    from simulator.compiling import prepare
    from simulator.sweep import recorded_request
    from simulator.sweep.bars import Bars

    if wanted.followed is None or wanted.followed.why is not None:
        return wanted
    prepare(_say)
    with Bars(["fit to the recording"]) as bars:
        return replace(wanted, tasks=recorded_request.with_fit(wanted.tasks, lambda share: bars.show([share])))


def simulate(wanted: Request, options: argparse.Namespace) -> list[Run]:
    """Run all tasks, with bars on stderr where that is a terminal."""
    from simulator.compiling import prepare
    from simulator.sweep import ray_sweep, sweep
    from simulator.sweep.bars import Bars

    prepare(_say)
    names = [_task_name(task) for task in wanted.tasks]
    with Bars(names) as bars:
        if options.ray is not None:
            return ray_sweep.run_all(wanted.tasks, address=options.ray, progress=bars.show)
        processes = options.processes or os.cpu_count() or 1
        return sweep.run_all(wanted.tasks, processes=processes, progress=bars.show)


def tell(wanted: Request, runs: list[Run], options: argparse.Namespace) -> None:
    """Make all results first, then write the files, then stdout."""
    results = _results(wanted, runs)
    if options.html is not None or options.plots is not None:
        from simulator.reports import files, html, plots

        contents: dict[Path, bytes] = {}
        if options.plots is not None:
            contents |= {options.plots / name: content for name, content in plots.pictures(results).items()}
        if options.html is not None:
            contents[options.html] = html.page(results).encode()
        files.write_all(contents)
    estimate = _estimate(wanted, runs, options)
    if options.json:
        from simulator.reports.document import dumps

        more = {} if estimate is None else {"recording": estimate.document()}
        sys.stdout.write(dumps(results.document() | more))
        return
    from simulator.recorded import tables as recorded_tables
    from simulator.reports.table import tables
    from simulator.reports.terminal import output

    if estimate is None:
        output().print(*tables(results))
    else:
        output().print(recorded_tables.head(estimate), *tables(results), *recorded_tables.tables(estimate))


def _estimate(wanted: Request, runs: Sequence[Run], options: argparse.Namespace) -> Estimate | None:
    """Returns what a recording says; None: nothing was recorded."""
    from simulator.recorded.estimate import Estimate
    from simulator.recorded.observed import observed
    from simulator.recorded.source import Recorded, reading
    from simulator.reports.measures import measure
    from simulator.sweep.recorded_request import said
    from simulator.sweep.sweep import facts_before, network_of

    task = wanted.tasks[0]
    if wanted.followed is None or not isinstance(task.source, Recorded):
        return None
    recording, recorded = reading(task.source)
    network = network_of(task)
    outcome = observed(recorded, network, wanted.followed.policy)
    return Estimate(
        recording=recording,
        recorded=recorded,
        policy=wanted.followed.policy,
        observed=measure(recorded.workload.jobs, network, outcome, facts_before(task)),
        runs={run.task.policy: run.measures for run in runs},
        limits=said(task.limits),
        port_rate_bps=options.port_rate,
        why=wanted.followed.why,
    )


def _results(wanted: Request, runs: Sequence[Run]) -> Results:
    from simulator.reports.results import Results

    grouped: dict[float | None, dict[str, list[Measures]]] = {}
    for run in runs:
        grouped.setdefault(run.task.load, {}).setdefault(run.task.policy, []).append(run.measures)
    given = sys.argv[1:]
    return Results(
        title=wanted.title,
        command=shlex.join(["trainyard", *given]) if given[:1] == ["sim"] else "trainyard sim, called by a program",
        seeds=wanted.seeds,
        seeded=wanted.loads != (None,),
        baseline=wanted.baseline,
        detail=wanted.detail,
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
