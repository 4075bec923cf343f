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

from evaluation import resume as kept
from evaluation import summary
from evaluation.claim import CLAIMS, NO_DATAPATH, Claim, Group, Setting, load
from evaluation.resume import Measured
from evaluation.side_by_side import Outcome, side_by_side
from topologies import checkout
from topologies.box.datapath import Datapath, Wanted, choose
from topologies.errors import one_line_errors
from topologies.lab.lab import EXPECTED_ERRORS, LabError
from topologies.signals import ending_signals

QUICK = " (quick: not to be quoted)"
QUICK_FOLDER = "quick"
SUMMARY = "summary.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a claim. Exit status: 0 done, 1 failed, 2 wrong input, 130 stopped by Ctrl-C."""
    parser = argparse.ArgumentParser(prog="scripts/evaluate", description=main.__doc__)
    parser.add_argument("claim", choices=CLAIMS)
    parser.add_argument("--quick", action="store_true", help="one seed, baseline and subject only; never to be quoted")
    parser.add_argument(
        "--datapath", choices=get_args(Wanted), default=None, help="where the switches run (as the claim says)"
    )
    parser.add_argument(
        "--boxes", type=_positive, default=None, metavar="N", help="networks at once, where each has a box (cores)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="keep the groups of arms that an earlier run with this command finished"
    )
    parser.add_argument(
        "--without-others", action="store_true", help="fair sharing and the subject alone, without what stands beside"
    )
    parser.add_argument("--results", type=Path, default=None, metavar="FOLDER")
    options = parser.parse_args(arguments)
    folder = options.results or checkout.ROOT / "results" / options.claim
    console = Console(stderr=True)
    command = " ".join(["scripts/evaluate", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        with ending_signals(), one_line_errors():
            claim = load(options.claim)
            evaluation = Evaluation(
                claim,
                options.datapath,
                folder,
                console,
                boxes=options.boxes,
                resume=options.resume,
                quick=options.quick,
                others=not options.without_others,
            )
            made = evaluation.document(command)
    except EXPECTED_ERRORS as error:
        console.print(f"evaluate: {error}", style="red", markup=False, highlight=False)
        return 1
    except (KeyboardInterrupt, SystemExit) as stopped:
        console.print("evaluate: stopped; --resume goes on from here", markup=False, highlight=False)
        if isinstance(stopped, SystemExit):
            raise
        return 130
    _show(claim, made)
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a whole number above 0")
    return value


@dataclass
class Evaluation:
    """One run of the command: where it measures, and what it has measured so far, by the groups' names.

    ``wanted`` of None: where the claim says. ``quick``: what it measures is kept apart from a full run's, and a full
    run's summary and plot are left as they are. ``others`` of False: without what stands beside baseline and subject.
    """

    claim: Claim[Any]
    wanted: Wanted | None
    folder: Path
    console: Console
    boxes: int | None
    resume: bool
    quick: bool
    others: bool = True
    _done: dict[str, Measured[Any]] = field(default_factory=dict)
    _stop: Event = field(default_factory=Event)

    def document(self, command: str) -> dict[str, Any]:
        """Measure the groups, write summary and plot, give the summary. Raises one of EXPECTED_ERRORS, OSError."""
        groups = self.claim.groups(quick=self.quick, others=self.others)
        datapath = choose(self._wanted) if self.claim.DATAPATH is not None else None
        # Boxes are apart from each other; networks on the machine's own kernel are not.
        at_once = (self.boxes or os.cpu_count() or 1) if datapath == "uml" else 1
        self.folder.mkdir(parents=True, exist_ok=True)
        self._measure(groups, datapath, at_once)
        measured = [self._done[group.name] for group in groups]
        commits = sorted({one.commit for one in measured})
        if len(commits) > 1:
            self.console.print(f"the groups were measured by different commits: {', '.join(commits)}", highlight=False)
        results = [(group, one.result) for group, one in zip(groups, measured, strict=True)]
        made = document(self.claim, results, command, at_once, commits=commits, quick=self.quick)
        folder = self._for_summary()
        summary.write(folder / SUMMARY, made)
        self.claim.plot(made, folder)
        return made

    @property
    def _wanted(self) -> Wanted:
        return self.wanted or self.claim.DATAPATH or "auto"

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

    def _measure(self, groups: Sequence[Group[Any]], datapath: Datapath | None, at_once: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console) as bars:
            total = bars.add_task("arms", total=sum(group.arms for group in groups))
            waiting = []
            for group in groups:
                found = self._kept(group, datapath or NO_DATAPATH)
                if found is None:
                    waiting.append(group)
                else:
                    self._done[group.name] = found
                    bars.advance(total, group.arms)

            def run(group: Group[Any]) -> Measured[Any]:
                return self._run(group, datapath)

            def done(group: Group[Any], outcome: Outcome[Measured[Any]]) -> None:
                try:
                    self._done[group.name] = outcome()
                    said, style = f"{time.strftime('%H:%M:%S')} {group.name}: {group.arms} arms done", ""
                except EXPECTED_ERRORS as error:
                    # Hours of other arms must not be lost with one.
                    said, style = f"{group.name}: {error}", "red"
                self.console.print(said, style=style, markup=False, highlight=False)
                bars.advance(total, group.arms)

            side_by_side(waiting, run, done, at_once=at_once, stop=self._stop)
        if missing := [group.name for group in groups if group.name not in self._done]:
            raise LabError(f"{', '.join(missing)} failed; with --resume the same command runs them again")

    def _kept(self, group: Group[Any], datapath: str) -> Measured[Any] | None:
        return kept.kept(self._place(group), group.asked(), datapath, group.read) if self.resume else None

    def _run(self, group: Group[Any], datapath: Datapath | None) -> Measured[Any]:
        folder, asked, commit = self._place(group), group.asked(), checkout.commit()
        with one_line_errors():
            kept.begin(folder)
            result = group.run(Setting(folder, self._wanted, datapath, self._stop))
            kept.keep(folder, asked, commit)
        return Measured(result, commit)

    def _place(self, group: Group[Any]) -> Path:
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
    claim: Claim[Any],
    results: Sequence[tuple[Group[Any], Any]],
    command: str,
    at_once: int,
    *,
    commits: Sequence[str],
    quick: bool,
) -> dict[str, Any]:
    """The contents of ``summary.json``. ``commits``: what measured the groups; ``quick``: no claim is to be quoted."""
    fields = claim.add_up(results)
    claims = [{**entry, "claim": entry["claim"] + (QUICK if quick else "")} for entry in claim.headline(fields)]
    seeds = sorted({group.seed for group, _ in results})
    return {
        **summary.head(command, results[0][1].datapath, seeds, claims),
        "quick": quick,
        "commits": list(commits),
        "networks_at_once": at_once,
        **fields,
    }


def _show(claim: Claim[Any], made: dict[str, Any]) -> None:
    for table in claim.tables(made):
        if made["quick"]:
            table.title = f"{table.title or ''}{QUICK}"
        Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
