"""``scripts/evaluate NAME``: one of the measured claims, from one command: a table, a plot and a summary."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from topologies import jpas_claim, plots, summary
from topologies.datapath import DatapathError, Wanted, choose
from topologies.jpas_claim import Group
from topologies.lab import EXPECTED_ERRORS, LabError, run_lab
from topologies.lab_result import LabResult, load_result

CLAIMS = ("jpas",)
_STOPPED: list[Event] = []


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a claim. Exit status: 0 done, 1 failed, 130 stopped by Ctrl-C."""
    parser = argparse.ArgumentParser(prog="scripts/evaluate", description=main.__doc__)
    parser.add_argument("claim", choices=CLAIMS)
    parser.add_argument("--quick", action="store_true", help="one seed, baseline and subject only; never to be quoted")
    parser.add_argument("--datapath", choices=get_args(Wanted), default="auto", help="where the switches run")
    parser.add_argument(
        "--boxes", type=int, default=0, metavar="N", help="networks at once, where each has a box (cores)"
    )
    parser.add_argument("--resume", action="store_true", help="keep the groups of arms that an earlier run finished")
    parser.add_argument("--results", type=Path, default=None, metavar="FOLDER")
    options = parser.parse_args(arguments)
    folder = options.results or summary.ROOT / "results" / (options.claim + ("-quick" if options.quick else ""))
    console = Console(stderr=True)
    groups = jpas_claim.groups(quick=options.quick)
    try:
        # Boxes are apart from each other; networks on the machine's own kernel are not.
        boxed = choose(options.datapath) == "uml"
        at_once = (options.boxes or os.cpu_count() or 1) if boxed else 1
        results = _run(groups, options.datapath, folder / "arms", at_once, resume=options.resume, console=console)
    except (DatapathError, *EXPECTED_ERRORS) as error:
        console.print(f"evaluate: {error}", style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("evaluate: stopped; --resume goes on from here", markup=False, highlight=False)
        return 130
    command = " ".join(["scripts/evaluate", *(arguments or sys.argv[1:])])
    document = _summary(results, command, at_once, quick=options.quick)
    summary.write(folder / "summary.json", document)
    plots.reductions(
        {load: {k: v for k, v in by.items() if k in jpas_claim.ORDER} for load, by in document["loads"].items()},
        jpas_claim.ORDER,
        folder / "jpas.png",
    )
    _show(document)
    return 0


def _run(
    groups: Sequence[Group], datapath: Wanted, folder: Path, at_once: int, *, resume: bool, console: Console
) -> list[tuple[Group, LabResult]]:
    """Run the groups, ``at_once`` networks side by side; results in the groups' order."""
    done: dict[str, LabResult] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bars:
        total = bars.add_task("arms", total=sum(len(group.policies) for group in groups))
        waiting = []
        for group in groups:
            kept = folder / group.name / "lab.json"
            if resume and kept.exists():
                done[group.name] = load_result(kept)
                bars.advance(total, len(group.policies))
            else:
                waiting.append(group)
        context = multiprocessing.get_context("spawn")
        stopped = context.Event()
        with ProcessPoolExecutor(at_once, mp_context=context, initializer=_heed, initargs=(stopped,)) as pool:
            running: dict[Future[LabResult], Group] = {
                pool.submit(_run_group, group, datapath, folder / group.name): group for group in waiting
            }
            try:
                for future in as_completed(running):
                    group = running[future]
                    bars.advance(total, len(group.policies))
                    try:
                        done[group.name] = future.result()
                        console.print(f"{time.strftime('%H:%M:%S')} {group.name}: {len(group.policies)} arms done")
                    except EXPECTED_ERRORS as error:
                        # Hours of other arms must not be lost with one.
                        console.print(f"{group.name}: {error}", style="red", markup=False, highlight=False)
            except BaseException:
                # What a worker has been handed already cannot be cancelled: it asks before it begins.
                stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    if missing := [group.name for group in groups if group.name not in done]:
        raise LabError(f"{', '.join(missing)} failed; with --resume the same command runs them again")
    return [(group, done[group.name]) for group in groups]


def _heed(stopped: Event) -> None:
    """A worker's start: what tells it not to begin anything more."""
    _STOPPED.append(stopped)


def _run_group(group: Group, datapath: Wanted, folder: Path) -> LabResult:
    if any(stopped.is_set() for stopped in _STOPPED):
        raise KeyboardInterrupt
    return run_lab(group.request(), datapath, results_dir=folder)


def _summary(results: Sequence[tuple[Group, LabResult]], command: str, at_once: int, *, quick: bool) -> dict[str, Any]:
    loads = jpas_claim.add_up(results)
    claims = []
    for load, policies in loads.items():
        fair, jpas = policies["fair"]["t90"], policies["jpas"]["t90"]
        claims.append(
            summary.claim(
                f"JPAS brings jobs to 90 % of their converged accuracy sooner than fair sharing, {load} load",
                metric="mean_t90",
                unit="s",
                baseline=fair["mean"],
                value=jpas["mean"],
                interval=tuple(jpas["reduction_ci95"]),
            )
        )
    seeds = sorted({group.seed for group, _ in results})
    arms = [arm for _, result in results for arm in result.arms]
    return {
        **summary.head(command, results[0][1].datapath, seeds, claims),
        "quick": quick,
        "networks_at_once": at_once,
        "arms": len(arms),
        "least_cpu_idle_share": min(arm.cpu_idle_share for arm in arms),
        "loads": loads,
    }


def _show(document: dict[str, Any]) -> None:
    for load, policies in document["loads"].items():
        table = Table(title=f"{load} load" + (" (quick: not to be quoted)" if document["quick"] else ""))
        for name in (
            "policy",
            "seeds",
            "t90 (s)",
            "t90 saved",
            "95 %",
            "headroom won",
            "t95 saved",
            "JCT saved",
            "censored",
        ):
            table.add_column(name, justify="left" if name == "policy" else "right")
        for policy, found in policies.items():
            if policy == "alone":
                continue
            t90 = found["t90"]
            low, high = t90["reduction_ci95"]
            table.add_row(
                policy,
                str(len(found["seeds"])),
                f"{t90['mean']:.1f}",
                f"{t90['reduction']:.1%}",
                f"{low:.1%} to {high:.1%}",
                f"{t90['headroom_won']:.0%}",
                f"{found['t95']['reduction']:.1%}",
                f"{found['jct']['reduction']:.1%}",
                f"{found['censored']}/{found['jobs']}",
            )
        table.add_row("alone", "", f"{policies['alone']['t90_seconds']['mean']:.1f}")
        Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
