"""``scripts/evaluate NAME``: one of the measured claims, from one command: a table, a plot and a summary."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, get_args

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from topologies import jpas_claim, kept, plots, summary
from topologies.datapath import Wanted, choose
from topologies.errors import one_line_errors
from topologies.jpas_claim import Group
from topologies.kept import Measured
from topologies.lab import EXPECTED_ERRORS, LabError, run_lab
from topologies.lab_result import LabResult
from topologies.side_by_side import Outcome, side_by_side
from topologies.signals import ending_signals

CLAIMS = ("jpas",)
QUICK = " (quick: not to be quoted)"
QUICK_FOLDER = "quick"
SUMMARY = "summary.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a claim. Exit status: 0 done, 1 failed, 2 wrong input, 130 stopped by Ctrl-C."""
    parser = argparse.ArgumentParser(prog="scripts/evaluate", description=main.__doc__)
    parser.add_argument("claim", choices=CLAIMS)
    parser.add_argument("--quick", action="store_true", help="one seed, baseline and subject only; never to be quoted")
    parser.add_argument("--datapath", choices=get_args(Wanted), default="auto", help="where the switches run")
    parser.add_argument(
        "--boxes", type=_positive, default=None, metavar="N", help="networks at once, where each has a box (cores)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="keep the groups of arms that an earlier run with this command finished"
    )
    parser.add_argument("--results", type=Path, default=None, metavar="FOLDER")
    options = parser.parse_args(arguments)
    folder = options.results or summary.ROOT / "results" / options.claim
    console = Console(stderr=True)
    groups = jpas_claim.groups(quick=options.quick)
    command = " ".join(["scripts/evaluate", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        with ending_signals(), one_line_errors():
            evaluation = Evaluation(
                options.datapath, folder, console, boxes=options.boxes, resume=options.resume, quick=options.quick
            )
            made = evaluation.document(groups, command)
    except EXPECTED_ERRORS as error:
        console.print(f"evaluate: {error}", style="red", markup=False, highlight=False)
        return 1
    except (KeyboardInterrupt, SystemExit) as stopped:
        console.print("evaluate: stopped; --resume goes on from here", markup=False, highlight=False)
        if isinstance(stopped, SystemExit):
            raise
        return 130
    _show(made)
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a whole number above 0")
    return value


@dataclass
class Evaluation:
    """One run of the command: where it measures, and what it has measured so far, by the groups' names.

    ``quick``: what it measures is kept apart from a full run's, and a full run's summary and plot are left as they are.
    """

    wanted: Wanted
    folder: Path
    console: Console
    boxes: int | None
    resume: bool
    quick: bool
    _done: dict[str, Measured] = field(default_factory=dict)
    _stop: Event = field(default_factory=Event)

    def document(self, groups: Sequence[Group], command: str) -> dict[str, Any]:
        """Measure the groups, write summary and plot, give the summary. Raises one of EXPECTED_ERRORS, OSError."""
        datapath = choose(self.wanted)
        # Boxes are apart from each other; networks on the machine's own kernel are not.
        at_once = (self.boxes or os.cpu_count() or 1) if datapath == "uml" else 1
        self.folder.mkdir(parents=True, exist_ok=True)
        self._measure(groups, datapath, at_once)
        measured = [self._done[group.name] for group in groups]
        commits = sorted({one.commit for one in measured})
        if len(commits) > 1:
            self.console.print(f"the groups were measured by different commits: {', '.join(commits)}", highlight=False)
        results = [(group, one.result) for group, one in zip(groups, measured, strict=True)]
        made = document(results, command, at_once, commits=commits, quick=self.quick)
        folder = self._for_summary()
        summary.write(folder / SUMMARY, made)
        plots.reductions(
            {load: {k: v for k, v in by.items() if k in jpas_claim.ORDER} for load, by in made["loads"].items()},
            jpas_claim.ORDER,
            folder / "jpas.png",
        )
        return made

    def _for_summary(self) -> Path:
        """Where summary and plot go: a quick run's never in the place of a full one's."""
        if not self.quick or not is_full(self.folder / SUMMARY):
            return self.folder
        folder = self.folder / QUICK_FOLDER
        self.console.print(
            f"{self.folder / SUMMARY} is of a full run and is left as it is; this quick one's is {folder / SUMMARY}",
            markup=False,
            highlight=False,
        )
        return folder

    def _measure(self, groups: Sequence[Group], datapath: str, at_once: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console) as bars:
            total = bars.add_task("arms", total=sum(len(group.policies) for group in groups))
            waiting = []
            for group in groups:
                found = kept.kept(self._place(group), group.request(), datapath) if self.resume else None
                if found is None:
                    waiting.append(group)
                else:
                    self._done[group.name] = found
                    bars.advance(total, len(group.policies))

            def done(group: Group, outcome: Outcome[Measured]) -> None:
                try:
                    self._done[group.name] = outcome()
                    said, style = f"{time.strftime('%H:%M:%S')} {group.name}: {len(group.policies)} arms done", ""
                except EXPECTED_ERRORS as error:
                    # Hours of other arms must not be lost with one.
                    said, style = f"{group.name}: {error}", "red"
                self.console.print(said, style=style, markup=False, highlight=False)
                bars.advance(total, len(group.policies))

            side_by_side(waiting, self._run, done, at_once=at_once, stop=self._stop)
        if missing := [group.name for group in groups if group.name not in self._done]:
            raise LabError(f"{', '.join(missing)} failed; with --resume the same command runs them again")

    def _run(self, group: Group) -> Measured:
        folder, request, commit = self._place(group), group.request(), summary.commit()
        with one_line_errors():
            kept.begin(folder)
            result = run_lab(request, self.wanted, results_dir=folder, stop=self._stop)
            kept.keep(folder, request, commit)
        return Measured(result, commit)

    def _place(self, group: Group) -> Path:
        # A quick group has the name of a full one, of which hours must not be lost.
        return (self.folder / QUICK_FOLDER if self.quick else self.folder) / "arms" / group.name


def is_full(path: Path) -> bool:
    """Whether a summary lies at ``path`` that is not marked as quick, or that cannot be told to be."""
    try:
        return json.loads(path.read_bytes()).get("quick") is not True
    except FileNotFoundError:
        return False
    except (OSError, ValueError, AttributeError):
        return True


def document(
    results: Sequence[tuple[Group, LabResult]], command: str, at_once: int, *, commits: Sequence[str], quick: bool
) -> dict[str, Any]:
    """The contents of ``summary.json``. ``commits``: what measured the groups; ``quick``: no claim is to be quoted."""
    loads = jpas_claim.add_up(results)
    claims = []
    for load, policies in loads.items():
        fair, jpas = policies["fair"]["t90"], policies["jpas"]["t90"]
        told = [
            (
                "JPAS brings jobs to 90 % of their converged accuracy sooner than fair sharing",
                "mean_t90",
                0.0,
                jpas["reduction_ci95"],
            )
        ]
        if jpas["headroom_won"] is not None:
            # Between fair sharing and each job alone lies what there is to win: the claim is of that.
            alone = policies["alone"]["t90_seconds"]["mean"]
            what = "JPAS wins a share of what fair sharing takes longer than each job alone"
            told.append((what, "t90_above_alone", alone, jpas["headroom_won_ci95"]))
        claims += [
            summary.claim(
                f"{what}, {load} load" + (QUICK if quick else ""),
                metric=metric,
                unit="s",
                baseline=fair["mean"] - floor,
                value=jpas["mean"] - floor,
                interval=tuple(interval),
            )
            for what, metric, floor, interval in told
        ]
    seeds = sorted({group.seed for group, _ in results})
    arms = [arm for _, result in results for arm in result.arms]
    return {
        **summary.head(command, results[0][1].datapath, seeds, claims),
        "quick": quick,
        "commits": list(commits),
        "networks_at_once": at_once,
        "arms": len(arms),
        "least_cpu_idle_share": min(arm.cpu_idle_share for arm in arms),
        "loads": loads,
    }


def _show(made: dict[str, Any]) -> None:
    for load, policies in made["loads"].items():
        table = Table(title=f"{load} load" + (QUICK if made["quick"] else ""))
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
                "" if t90["headroom_won"] is None else f"{t90['headroom_won']:.0%}",
                f"{found['t95']['reduction']:.1%}",
                f"{found['jct']['reduction']:.1%}",
                f"{found['censored']}/{found['jobs']}",
            )
        if "alone" in policies:
            table.add_row("alone", "", f"{policies['alone']['t90_seconds']['mean']:.1f}")
        Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
