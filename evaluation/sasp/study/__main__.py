"""``python -m evaluation.sasp.study``: tunes and compares ways with late gradients, on one processor.

    .venv-frameworks/bin/python -m evaluation.sasp.study tune --minutes 20
    .venv-frameworks/bin/python -m evaluation.sasp.study compare --task cnn
    .venv-frameworks/bin/python -m evaluation.sasp.study rates

``tune`` chooses learning rates on the tuning seeds, ``compare`` then trains on the others; ``plan`` has the rule.
``same-rate`` trains each arm with the rate to which ``bsp+overlap`` was tuned, as a user does who does not tune. What
was trained is kept in ``--out``, so the same command goes on with a study that was stopped, or that ``--minutes`` have
ended. Several tasks may be trained at once, each by a command of its own. With ``--delays`` an arm's gradients are as
late as they were in a recorded job, and iterations take as long. Without, layers are as late as the arm lets them be,
and times are those of the recursion that chooses which layers are late; these are no measurement. With ``--seconds``
iterations alone are as recorded. Communication takes ``--ratio`` times the computing. ``rates`` trains nothing: it
writes what ``scripts/evaluate sasp`` takes from a study that is tuned, into ``--write``: of all arms over a parameter
server, and with ``--over ranks`` of ``partial``, "partial, momentum" and "partial, local".
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import torch

from evaluation.sasp import rates
from evaluation.sasp.study import chosen, plan, report
from evaluation.sasp.study.arms import ARMS, PLAIN_ARMS, Transport, going_over
from evaluation.sasp.study.task_study import Place, Step, TaskStudy, TimeIsUpError
from evaluation.sasp.study.tasks import TASKS
from sasp.core.errors import SaspError
from topologies.signals import exit_status
from topologies.trainer.results import write_whole

LATENCY = 0.2
"""After a transfer the answer takes this share of the computing, where ``--latency`` does not say otherwise."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m evaluation.sasp.study", description=__doc__)
    options.add_argument("step", choices=[*get_args(Step), "rates"])
    options.add_argument("--task", nargs="+", choices=list(TASKS), default=list(TASKS))
    options.add_argument("--arm", nargs="+", choices=list(ARMS), help="all that go over the transport by default")
    options.add_argument("--ratio", type=float, default=1.0, help="communication as a share of computing (1)")
    options.add_argument("--latency", type=float, default=LATENCY, help=f"as a share of computing ({LATENCY:g})")
    options.add_argument("--optimizer", choices=["adamw", "sgd", "nesterov"], help="in the place of each task's own")
    options.add_argument("--minutes", type=float, default=math.inf, help="begin no run after so many (no limit)")
    options.add_argument("--delays", type=Path, help="the folder that python -m evaluation.sasp.delays has filled")
    options.add_argument("--seconds", type=Path, help="likewise, for nothing but how long an iteration takes")
    options.add_argument("--over", choices=get_args(Transport), default="server", help="the transport (server)")
    options.add_argument("--out", type=Path, default=Path("results/sasp-study"))
    options.add_argument("--write", type=Path, default=rates.FILE, help="the file of the step rates")
    return options


def main() -> int:
    """Returns the exit status: 0 done, 1 not all is trained yet, 2 what cannot be read or trained."""
    options = parser().parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        if options.step == "rates":
            write_whole(options.write, json.dumps(document(options), indent=1) + "\n")
        else:
            show(studied(options), arms_of(options))
    except (OSError, ValueError, SaspError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except TimeIsUpError:
        missing = "not all arms are tuned yet; the step tune goes on with them"
        goes_on = "the time is up; the same command goes on from here"
        sys.stderr.write((missing if options.step == "rates" else goes_on) + "\n")
        return 1
    return 0


def arms_of(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the arms that are asked for. Raises SaspError for one that cannot go over the transport."""
    going = going_over(options.over, options.arm)
    if missing := [name for name in options.arm or () if name not in going]:
        (other,) = set(get_args(Transport)) - {options.over}
        raise SaspError(f"{'; '.join(missing)}: not over {options.over}; say --over {other}")
    return going


def _studies(options: argparse.Namespace, over: Transport, until: float) -> list[TaskStudy]:
    place = Place(options.out, options.delays, options.seconds, over, options.ratio, options.latency)
    return [TaskStudy(TASKS[name], options.optimizer or TASKS[name].optimizer, place, until) for name in options.task]


def studied(options: argparse.Namespace) -> list[report.Row]:
    """Train what is missing. Raises OSError, ValueError, SaspError, TimeIsUpError."""
    arms = arms_of(options)
    studies = _studies(options, options.over, time.monotonic() + 60 * options.minutes)
    return [row for study in studies for row in study.rows(arms, options.step, sys.stderr.write)]


def show(rows: Sequence[report.Row], arms: Sequence[str]) -> None:
    """Print the tables."""
    sys.stdout.write("\n".join(report.lines(rows, PLAIN_ARMS)) + "\n")
    if set(PLAIN_ARMS) & set(arms):
        for arm, (saved, interval) in report.saved_over_tasks(rows, PLAIN_ARMS).items():
            sys.stdout.write(f"{'all tasks':12} {arm:36} saved {saved:.1%} {report.shown(interval)}\n")


def document(options: argparse.Namespace) -> dict[str, Any]:
    """What the claim takes, from the record alone. Raises OSError, ValueError, TimeIsUpError."""
    transports: tuple[Transport, ...] = get_args(Transport)
    studies = {over: _studies(options, over, -math.inf) for over in transports}
    tuned = {
        over: [row for study in studies[over] for row in study.rows(chosen.wanted_of(over))] for over in transports
    }
    compared = {
        over: [row for study in studies[over] for arm in chosen.wanted_of(over) for row in _known(study, arm)]
        for over in transports
    }
    return {
        "workers": plan.WORKERS,
        "defaults": {over: chosen.default_of(tuned[over], over) for over in transports},
        "tasks": {
            study.setting.task: {
                "optimizer": study.setting.optimizer,
                "iterations": study.setting.iterations,
                "target": study.target,
                "needed": study.offsets.needed,
                "ready": study.offsets.ready,
                "sizes": study.offsets.sizes,
                "arms": {over: chosen.arms_of(tuned[over], compared[over], study.setting.task) for over in transports},
            }
            for study in studies[transports[0]]
        },
    }


def _known(study: TaskStudy, arm: str) -> list[report.Row]:
    """The row of an arm's comparison, if it is done."""
    try:
        return study.rows([arm], "compare")
    except TimeIsUpError:
        return []


if __name__ == "__main__":
    sys.exit(exit_status(main))
