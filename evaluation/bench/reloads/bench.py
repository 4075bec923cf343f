"""The settings of a running controller are changed again and again while links are full: what stays must not notice.

A real controller orders three leaf switches with two hosts each below one spine, in the box where this kernel has no
datapath. All links have 10 Mbit/s, and queues hold 1,000 packets. From h1 to h3, over three switches, go numbered
packets of a job and numbered packets of no job, 85 % of each link, and TCP of another job fills the way back.
An agent sends reports and another waits for its marks, each on one connection to the API. Every two seconds the
settings file changes, and ``POST /v1/reload`` is called. A change is made, and the next reload takes it back: a host
on the switch of h1 is removed; another host's rate, the rate of a link, all floors, the policy (which turns the order
of two other jobs), ``table_budget``, a token of the tokens file, ``untrusted_hosts``; all of these at once; and three
files that are wrong in one place, and have all these changes too. Then the same time goes by without any reload.

The aims, which were set before the first measurement:

- no numbered packet is lost, and none comes late, where the same time without a reload loses none either;
- no rule that a change does not concern is touched: each has its cookie, and its age shows that it was not made again;
- no queue of a port that a change does not concern is written, and where all floors change each port keeps its rows in
  the database and its counters in the kernel;
- each reload is answered within 1 s, and changed floors are in the kernel of every switch within 2 s of the request;
- no request on an open connection is refused, and no connection breaks;
- a file that is wrong is refused (422), and changes nothing.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import TypeAdapter

from evaluation.bench.figures import Bench, Figure
from evaluation.bench.reloads.window import Window, with_reloads, without_reload
from evaluation.bench.reloads.yard import yard
from topologies.box import datapath
from topologies.errors import LabError

ROUNDS = 1
LIMIT_ANSWER_MS = 1000.0
LIMIT_FLOORS_MS = 2000.0
_MEMORY = "2G"
_WINDOWS = TypeAdapter(tuple[Window, Window])
_NONE = (math.nan, math.nan)


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the network could not be made, or a reload did not do what it should."""
    found = folder / "reload.json"
    found.unlink(missing_ok=True)
    command = ["--memory", _MEMORY, "--", sys.executable, "-W", "ignore", "-m", __name__, str(found)]
    if status := datapath.main(command):
        raise RuntimeError(f"the bench of reloads ended with status {status}")
    reloads, quiet = _WINDOWS.validate_json(found.read_bytes())
    where = "uml" if datapath.choose() == "uml" else "kernel"
    return Bench(figures=figures(reloads, quiet), datapath=where, details=_details(reloads, quiet))


def figures(reloads: Window, quiet: Window) -> tuple[Figure, ...]:
    """Returns what was seen with reloads beside the same time without one."""
    answers = [1e3 * each.seconds for each in reloads.reloads]
    floors = [1e3 * each.floors_seconds for each in reloads.reloads if each.floors_seconds is not None]
    refused = sum(each.status != 200 for each in reloads.reloads)
    count = len(reloads.reloads)
    without = "without a reload"
    return (
        _zero(f"Numbered packets lost or late in {count} reloads", "lost", _lost(reloads), _lost(quiet), without),
        _zero("Rules touched that no change concerned", "rules", len(reloads.touched_rules), reloads.rules, "rules"),
        _zero(
            "Queues touched that no change concerned",
            "queues",
            len(reloads.touched_queues),
            reloads.queues,
            "rows of queues",
        ),
        _zero(
            "Requests refused and connections broken",
            "requests",
            reloads.refused + reloads.broke,
            reloads.requests,
            "requests",
        ),
        _zero("What refused files changed", "refused", len(reloads.touched_wrongly), refused, "refused files"),
        _longest("From a reload's request to its answer, longest", "answer", answers, LIMIT_ANSWER_MS),
        _longest("From the request until floors are in every kernel, longest", "floors", floors, LIMIT_FLOORS_MS),
    )


def _zero(claim: str, metric: str, value: int, baseline: int, baseline_name: str) -> Figure:
    return Figure(claim, metric=metric, unit="", value=value, baseline=baseline, baseline_name=baseline_name,
                  ci95=_NONE, limit=1)  # fmt: skip


def _longest(claim: str, metric: str, milliseconds: Sequence[float], limit: float) -> Figure:
    return Figure(claim, metric=metric, unit="ms", value=max(milliseconds), baseline=median(milliseconds),
                  baseline_name="median", ci95=_NONE, limit=limit)  # fmt: skip


def _lost(window: Window) -> int:
    return sum(each.sent - each.came + each.late for each in window.numbered.values())


def _details(reloads: Window, quiet: Window) -> dict[str, Any]:
    return {"reloads": asdict(reloads), "quiet": asdict(quiet)}


def main() -> int:
    """Inside: both windows, as JSON, into the file named on the command line."""
    with tempfile.TemporaryDirectory() as scratch, yard(Path(scratch)) as made:
        try:
            reloads = with_reloads(made, ROUNDS)
            quiet = without_reload(made, reloads.seconds)
        except BaseException:
            sys.stderr.write(made.controller.log()[-4000:])
            raise
    Path(sys.argv[1]).write_text(json.dumps([asdict(reloads), asdict(quiet)]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (AssertionError, LabError, subprocess.SubprocessError) as error:
        sys.exit(f"bench reload: {error}")
