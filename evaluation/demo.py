"""``scripts/demo``: runs the same jobs under fair sharing and under JPAS, and shows the times side by side."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table

from evaluation import plots, summary
from evaluation.demo_jobs import BASELINE, PERIOD_SECONDS, SUBJECT, choices, demo_wave, known
from simulator.reports.statistics import reduction, reduction_interval_over_jobs
from simulator.reports.terminal import output
from topologies import checkout
from topologies.box.datapath import Wanted, with_most_processors
from topologies.errors import one_line_errors
from topologies.lab import comparison
from topologies.lab.bars import Bars
from topologies.lab.lab import EXPECTED_ERRORS, run_arms
from topologies.lab.results import LabResult
from topologies.signals import ending_signals

SPREAD = "spread over the jobs of this one run (bootstrap), not over runs"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the same training jobs under fair sharing and under JPAS.

    Exit status: 0 done, 1 failed, 130 stopped by Ctrl-C.
    """
    parser = argparse.ArgumentParser(prog="scripts/demo", description=main.__doc__)
    parser.add_argument(
        "--datapath",
        choices=get_args(Wanted),
        default=None,
        help="the datapath of the emulated switch; the default is the one with most processors that works here",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=checkout.ROOT / "results" / "demo",
        metavar="FOLDER",
        help="results folder; the default is results/demo",
    )
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    jobs = demo_wave(period_seconds=PERIOD_SECONDS)
    experiment = jobs.experiment
    console.print(
        f"{experiment.hosts} emulated servers on one switch, {experiment.link_bps / 1e6:g} Mbit/s a link: "
        f"{len(experiment.jobs)} training jobs run first under fair sharing, then under JPAS. About five minutes."
    )
    command = " ".join(["scripts/demo", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        with ending_signals(), one_line_errors():
            with Bars(console) as bars:
                result = run_arms(
                    experiment,
                    choices(jobs),
                    options.datapath or with_most_processors(),
                    bars.show,
                    options.results / "arms",
                    prove_queues=True,
                )
            knows = known(jobs)
            document = demo_summary(result, command) | {"known": knows}
            summary.write(options.results / "summary.json", document)
            plots.demo(result, options.results / "demo.png")
    except EXPECTED_ERRORS as error:
        console.print(f"demo: {error}", style="red", markup=False, highlight=False)
        return 1
    except (KeyboardInterrupt, SystemExit) as stopped:
        console.print("demo: stopped; everything was taken down", markup=False, highlight=False)
        if isinstance(stopped, SystemExit):
            raise
        return 130
    show(result, document, knows)
    output().print(f"[dim]summary, plot and logs: {options.results}[/dim]")
    print_last(f"both runs, side by side: {replay_command(options.results)}")
    return 0


def replay_command(results: Path) -> str:
    """Returns the command that plays both runs in a browser, for a terminal in the checkout."""
    folder = results.resolve()
    shown = folder.relative_to(checkout.ROOT) if folder.is_relative_to(checkout.ROOT) else folder
    return f".venv/bin/trainyard console {shlex.quote(str(shown))}"


def print_last(line: str) -> None:
    """Print a line in one piece, so that it can be copied."""
    output().print(line, soft_wrap=True, markup=False, highlight=False)


def demo_summary(result: LabResult, command: str) -> dict[str, object]:
    """Return the contents of ``results/demo/summary.json``."""
    arms = {arm.policy: arm for arm in result.arms}
    fair, jpas = arms[BASELINE], arms[SUBJECT]
    pairs = {m: (comparison.values(fair, m), comparison.values(jpas, m)) for m in comparison.MEASURES}
    intervals = {measure: reduction_interval_over_jobs(*pair) for measure, pair in pairs.items()}
    proof = result.queue_proof
    claims = [
        summary.claim(
            comparison.sooner("JPAS", "the demo's jobs", measure),
            metric=f"mean_{comparison.short(measure)}",
            unit="s",
            baseline=comparison.mean(fair, measure),
            value=comparison.mean(jpas, measure),
            interval=intervals[measure],
        )
        | {"ci95_meaning": SPREAD}
        for measure in comparison.MEASURES
    ]
    control = jpas.control
    return {
        **summary.head(command, result.datapath, [jpas.seed], claims),
        "testbed": {
            "hosts": result.hosts,
            "datapath": result.datapath,
            "link_bps": result.link_bps,
            "queues": result.queues,
        },
        "queue_proof": None
        if proof is None
        else {"high_bps": proof.high_bps, "low_bps": proof.low_bps, "ratio": proof.ratio},
        "policies": {name: comparison.policy_summary(arm) for name, arm in arms.items()},
        "reduction": {
            "t90": reduction(*pairs["t90_seconds"]),
            "t95": reduction(*pairs["t95_seconds"]),
            "t90_ci95": list(intervals["t90_seconds"]),
            "t90_ci95_meaning": SPREAD,
        },
        "control": {
            "report_to_rule_ms": {"p50": _ms(control.report_to_rule_p50), "p99": _ms(control.report_to_rule_p99)},
            "plans": control.plans,
            "flow_mods": control.flow_mods,
        },
        "bytes_by_class": {name: list(arm.bytes_by_class) for name, arm in arms.items()},
    }


def show(result: LabResult, document: dict[str, object], knows: Mapping[str, str]) -> None:
    """Print the table, the queue proof and the mean times on stdout. ``knows`` says what JPAS knew of each job."""
    arms = {arm.policy: arm for arm in result.arms}
    table = Table(title="Seconds from a job's arrival to 90 % and 95 % of its converged accuracy, and to its end")
    table.add_column("job", no_wrap=True)
    for measure in ("t90", "t95", "JCT"):
        for policy in (BASELINE, SUBJECT):
            table.add_column(f"{measure} {policy}", justify="right")
    for job in arms[BASELINE].jobs:
        table.add_row(job, *(_cell(comparison.value(arms[p].jobs[job], m)) for m in comparison.MEASURES for p in arms))
    table.add_section()
    table.add_row("mean", *(_cell(comparison.mean(arms[p], m)) for m in comparison.MEASURES for p in arms))
    console = output()
    console.print(_known(knows))
    console.print(table)
    if result.queue_proof is not None:
        proof = result.queue_proof
        console.print(
            f"queue proof: of two flows into a port the first class got {proof.high_bps / 1e6:.1f} Mbit/s and the next "
            f"one {proof.low_bps / 1e6:.1f} Mbit/s, {proof.ratio:.0f} : 1 (datapath {result.datapath})"
        )
    for policy, arm in arms.items():
        if missed := comparison.censored(arm):
            console.print(f"{policy}: {', '.join(missed)} missed a target; the means count their time so far")
    shares = document["reduction"]
    assert isinstance(shares, dict)
    console.print(
        f"[bold]mean t90 {_change(shares['t90'])}[/bold], mean t95 {_change(shares['t95'])} under JPAS than under fair "
        f"sharing (95 % interval over these jobs: {-shares['t90_ci95'][1]:+.0%} to {-shares['t90_ci95'][0]:+.0%})"
    )


def _known(knows: Mapping[str, str]) -> Table:
    table = Table("job", "what JPAS knew of it when it came")
    for job, words in knows.items():
        table.add_row(job, words)
    return table


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _cell(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}"


def _change(share: float) -> str:
    return f"{share:.0%} shorter" if share >= 0 else f"{-share:.0%} longer"


if __name__ == "__main__":
    sys.exit(main())
