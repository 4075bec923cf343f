"""``scripts/evaluate NAME``: measures one claim and writes a table, a plot and a summary."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, get_args

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evaluation import resume, summary
from evaluation.claim import CLAIMS, NO_DATAPATH, Claim, Group, HasSmallForm, Setting
from evaluation.claim import load as load_claim
from evaluation.resume import Measured
from evaluation.side_by_side import Outcome, side_by_side
from simulator.reports.terminal import output
from topologies import checkout
from topologies.box.datapath import Datapath, Wanted, choose
from topologies.errors import one_line_errors
from topologies.lab.lab import EXPECTED_ERRORS, LabError
from topologies.signals import ending_signals

QUICK = " (quick: not to be quoted)"
QUICK_FOLDER = "quick"
PART_FOLDER = "part"
SUMMARY = "summary.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one of the documentation's claims.

    Exit status: 0 done, 1 failed, 2 wrong input, 130 stopped by Ctrl-C.
    """
    parser = argparse.ArgumentParser(prog="scripts/evaluate", description=main.__doc__)
    parser.add_argument("claim", choices=CLAIMS, help="the claim to measure")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="measure one seed, the baseline and the subject only; do not quote such a result",
    )
    parser.add_argument(
        "--datapath",
        choices=get_args(Wanted),
        default=None,
        help="the datapath of the emulated switches; the default depends on the claim",
    )
    parser.add_argument(
        "--boxes",
        type=_positive,
        default=None,
        metavar="N",
        help="run N networks at once where each has a User-Mode Linux box; the default is the number of cores",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="keep the results that an earlier run of this command has finished, and measure the rest",
    )
    parser.add_argument(
        "--without-others",
        action="store_true",
        help="measure fair sharing and the subject only, without the other policies",
    )
    parser.add_argument(
        "--results", type=Path, default=None, metavar="FOLDER", help="results folder; the default is results/CLAIM"
    )
    # The one adds nothing up, the other measures nothing.
    part = parser.add_mutually_exclusive_group()
    part.add_argument(
        "--only",
        default=None,
        metavar="BEGIN",
        help="measure only groups whose names begin so, and add nothing up; for a sitting of a long claim",
    )
    part.add_argument(
        "--measured",
        action="store_true",
        help="add up the groups that earlier runs have measured, and measure none; the summary names the others",
    )
    parser.add_argument(
        "--small-form",
        type=Path,
        default=None,
        metavar="FOLDER",
        help="write each result there in a small form too; --resume reads it where the results folder has none",
    )
    options = parser.parse_args(arguments)
    folder = options.results or checkout.ROOT / "results" / options.claim
    console = Console(stderr=True)
    command = " ".join(["scripts/evaluate", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        with ending_signals(), one_line_errors():
            claim = load_claim(options.claim)
            evaluation = Evaluation(
                claim,
                options.datapath,
                folder,
                console,
                boxes=options.boxes,
                resume=options.resume or options.measured,
                quick=options.quick,
                others=not options.without_others,
                small_form=options.small_form,
            )
            if options.only is not None:
                evaluation.measure_only(options.only)
                return 0
            summary_document = evaluation.document(command, measures=not options.measured)
    except EXPECTED_ERRORS as error:
        console.print(f"evaluate: {error}", style="red", markup=False, highlight=False)
        return 1
    except (KeyboardInterrupt, SystemExit) as stopped:
        console.print("evaluate: stopped; the same command with --resume continues", markup=False, highlight=False)
        if isinstance(stopped, SystemExit):
            raise
        return 130
    _show(claim, summary_document)
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a whole number above 0")
    return value


@dataclass
class Evaluation:
    """One run of the command: where it measures, and its results so far, by the names of the groups.

    With ``wanted`` None the claim decides the datapath. The results of a ``quick`` run have a folder of their own, and
    it never overwrites the summary and plot of a full run. With ``others`` False only baseline and subject run.
    ``small_form`` is the folder of the small forms of results, None: there are none (see ``evaluation.resume``).
    """

    claim: Claim[Any]
    wanted: Wanted | None
    folder: Path
    console: Console
    boxes: int | None
    resume: bool
    quick: bool
    others: bool = True
    small_form: Path | None = None
    choose_datapath: Callable[[Wanted], Datapath] = choose
    _done: dict[str, Measured[Any]] = field(default_factory=dict)
    _stop: Event = field(default_factory=Event)

    def measure_only(self, begin: str) -> None:
        """Measure the groups whose names begin so, as far as they are not measured. Raises EXPECTED_ERRORS, OSError."""
        groups = self._groups()
        chosen = [group for group in groups if group.name.startswith(begin)]
        if not chosen:
            raise LabError(f"no group's name begins with {begin!r}; there are {', '.join(g.name for g in groups)}")
        self._measure(chosen, *self._place())
        self.console.print(f"{len(chosen)} of {len(groups)} groups are measured", highlight=False)

    def document(self, command: str, *, measures: bool = True) -> dict[str, Any]:
        """Measure the groups, write summary and plot, and return the summary. Raises EXPECTED_ERRORS, OSError.

        With ``measures`` False it is of those that are measured already.
        """
        all_groups = groups = self._groups()
        datapath, at_once = self._place()
        if measures:
            self._measure(groups, datapath, at_once)
        else:
            groups = self._measured_of(groups, datapath)
        missing = [group.name for group in all_groups if group.name not in self._done]
        measured = [self._done[group.name] for group in groups]
        commits = sorted({result.commit for result in measured})
        if len(commits) > 1:
            self.console.print(f"the groups were measured by different commits: {', '.join(commits)}", highlight=False)
        results = [(group, group_result.result) for group, group_result in zip(groups, measured, strict=True)]
        contents = document(self.claim, results, command, at_once, commits=commits, quick=self.quick, missing=missing)
        folder = self._summary_folder(is_whole=not missing)
        summary.write(folder / SUMMARY, contents)
        self.claim.plot(contents, folder)
        return contents

    def _groups(self) -> Sequence[Group[Any]]:
        groups = self.claim.groups(quick=self.quick, others=self.others)
        if self.small_form is not None and not all(isinstance(group, HasSmallForm) for group in groups):
            raise LabError("this claim has no small form: only claims on the testbed have one")
        return groups

    def _place(self) -> tuple[Datapath | None, int]:
        """Returns the datapath, and how many networks run at once. Makes the results folder."""
        datapath = self.choose_datapath(self._wanted) if self.claim.DATAPATH is not None else None
        self.folder.mkdir(parents=True, exist_ok=True)
        # Boxes are isolated from each other. Networks on the machine's own kernel are not.
        return datapath, (self.boxes or os.cpu_count() or 1) if datapath == "uml" else 1

    @property
    def _wanted(self) -> Wanted:
        return self.wanted or self.claim.DATAPATH or "auto"

    def _measured_of(self, groups: Sequence[Group[Any]], datapath: Datapath | None) -> Sequence[Group[Any]]:
        """Returns the groups that are measured. Raises LabError where there are none."""
        for group in groups:
            if (finished := self._finished(group, datapath or NO_DATAPATH)) is not None:
                self._done[group.name] = finished
        found = [group for group in groups if group.name in self._done]
        if not found:
            raise LabError("no group is measured yet; without --measured the command measures them")
        if missing := [group.name for group in groups if group.name not in self._done]:
            self.console.print(f"not measured: {', '.join(missing)}", markup=False, highlight=False)
        return found

    def _summary_folder(self, *, is_whole: bool) -> Path:
        """The folder of summary and plot. A quick run, or a part of one, never overwrites those of a full run."""
        if (is_whole and not self.quick) or not is_full(self.folder / SUMMARY):
            return self.folder
        kind, name = ("quick run", QUICK_FOLDER) if self.quick else ("part of one", PART_FOLDER)
        folder = self.folder / name
        self.console.print(
            f"{self.folder / SUMMARY} belongs to a full run and stays; this {kind} writes {folder / SUMMARY}",
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
                finished = self._finished(group, datapath or NO_DATAPATH)
                if finished is None:
                    waiting.append(group)
                else:
                    self._done[group.name] = finished
                    bars.advance(total, group.arms)

            def run(group: Group[Any]) -> Measured[Any]:
                return self._run(group, datapath)

            def done(group: Group[Any], outcome: Outcome[Measured[Any]]) -> None:
                try:
                    self._done[group.name] = outcome()
                    line, style = f"{time.strftime('%H:%M:%S')} {group.name}: {group.arms} arms done", ""
                except EXPECTED_ERRORS as error:
                    # The failure of one group must not cost hours of the others.
                    line, style = f"{group.name}: {error}", "red"
                self.console.print(line, style=style, markup=False, highlight=False)
                bars.advance(total, group.arms)

            side_by_side(waiting, run, done, at_once=at_once, stop=self._stop)
        if missing := [group.name for group in groups if group.name not in self._done]:
            raise LabError(f"{', '.join(missing)} failed; the same command with --resume runs them again")

    def _finished(self, group: Group[Any], datapath: str) -> Measured[Any] | None:
        if not self.resume:
            return None
        found = resume.load(self._folder_of(group), group.asked(), datapath, group.read)
        if isinstance(group, HasSmallForm) and (path := self._small_form_of(group)) is not None:
            small = resume.load_small(path, group.asked(), datapath, group.answer)
            if found is None:
                return small
            if small is None:
                # A run without --small-form measured it.
                resume.save_small(path, group.asked(), found.commit, group.small(found.result))
        return found

    def _run(self, group: Group[Any], datapath: Datapath | None) -> Measured[Any]:
        folder, request, commit = self._folder_of(group), group.asked(), checkout.commit()
        with one_line_errors():
            resume.mark_unfinished(folder)
            result = group.run(Setting(folder, self._wanted, datapath, self._stop))
            resume.mark_whole(folder, request, commit)
            if isinstance(group, HasSmallForm) and (path := self._small_form_of(group)) is not None:
                resume.save_small(path, request, commit, group.small(result))
        return Measured(result, commit)

    def _small_form_of(self, group: Group[Any]) -> Path | None:
        """Returns the file of the small form of a group's result; None where there is none."""
        if self.quick or self.small_form is None or not isinstance(group, HasSmallForm):
            return None
        return self.small_form / f"{group.name}.json"

    def _folder_of(self, group: Group[Any]) -> Path:
        # A quick group has the name of a full one, whose result took hours and must stay.
        return (self.folder / QUICK_FOLDER if self.quick else self.folder) / "arms" / group.name


def is_full(path: Path) -> bool:
    """Returns whether ``path`` is a summary of all groups, and not quick. One that cannot be read counts as such."""
    try:
        found = json.loads(path.read_bytes())
        return found.get("quick") is not True and not found.get("missing")
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
    missing: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the contents of ``summary.json``.

    ``commits`` measured the groups. A ``quick`` run marks its claims, because they must not be quoted. ``missing`` are
    the names of the groups that are not measured.
    """
    fields = claim.add_up(results)
    claims = [{**entry, "claim": entry["claim"] + (QUICK if quick else "")} for entry in claim.headline(fields)]
    seeds = sorted({group.seed for group, _ in results})
    return {
        **summary.head(command, results[0][1].datapath, seeds, claims),
        "quick": quick,
        "missing": list(missing),
        "commits": list(commits),
        "networks_at_once": at_once,
        **fields,
    }


def _show(claim: Claim[Any], contents: dict[str, Any]) -> None:
    for table in claim.tables(contents):
        if contents["quick"]:
            table.title = f"{table.title or ''}{QUICK}"
        output().print(table)


if __name__ == "__main__":
    sys.exit(main())
