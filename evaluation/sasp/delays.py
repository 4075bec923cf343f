"""``python -m evaluation.sasp.delays``: records on the testbed how late the gradients of each of the study's arms are.

    .venv/bin/python -m evaluation.sasp.delays --task cnn --small-form evaluation/sasp/recorded
    .venv-frameworks/bin/python -m evaluation.sasp.study tune --task cnn --delays evaluation/sasp/recorded

Each arm is trained for a short while over a parameter server, and over all-reduce, as far as it goes over them. Where
communication takes as long as it should is measured as for ``scripts/evaluate sasp``. What is recorded stays in
``--out``, so the same command goes on with what is missing. ``--small-form`` writes each arm's as one file. What is
recorded with another ``--ratio`` than 1 has a folder of its own in both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from evaluation import resume
from evaluation.sasp.claim import DATAPATH
from evaluation.sasp.emulation.recording import read
from evaluation.sasp.groups import ACCELERATOR_SECONDS, CHUNK_BYTES, LIMIT_SECONDS
from evaluation.sasp.study.arms import ARMS, Arm, Transport
from evaluation.sasp.study.plan import TUNING_SEEDS, WORKERS
from evaluation.sasp.study.recorded import at_ratio, file_of
from evaluation.sasp.testbed.lab import LAB
from evaluation.sasp.testbed.request import TASK_NAMES, SaspRequest, TaskName, Training, Ways
from topologies import checkout
from topologies.box.datapath import Wanted, choose
from topologies.errors import one_line_errors
from topologies.lab.lab import EXPECTED_ERRORS
from topologies.signals import ending_signals, exit_status

ITERATIONS = 96
"""The last three quarters of them stand for a job's."""

CHOOSING_ITERATIONS = 384
"""So many where a job chooses which layers are late: that takes it up to 92 iterations with 16 layers."""


def request(task: TaskName, transport: Transport, ratio: float, arms: Sequence[str] = tuple(ARMS)) -> SaspRequest:
    """Return the short jobs of a task, of those arms that go over the transport."""
    trainings = tuple(_training(ARMS[name]) for name in arms if transport in ARMS[name].transports)
    return SaspRequest(
        task, transport, ratio, TUNING_SEEDS[0], WORKERS, ACCELERATOR_SECONDS[task], trainings, LIMIT_SECONDS,
        CHUNK_BYTES, record=True,
    )  # fmt: skip


def _training(arm: Arm) -> Training:
    strength = arm.strengths[len(arm.strengths) // 2]
    ways = Ways(arm.layers == "needed", arm.late.prediction, strength, arm.late.rates, arm.halves)
    iterations = CHOOSING_ITERATIONS if ways.partial else ITERATIONS
    return Training(arm.folder, str(arm.scheme), iterations, ways)


def record(asked: SaspRequest, wanted: Wanted, folder: Path) -> bool:
    """Record what the request asks for, and return True; return False where it is there. Raises EXPECTED_ERRORS."""
    if resume.load(folder, asked, choose(wanted), LAB.read) is not None:
        return False
    resume.mark_unfinished(folder)
    LAB.run(asked, wanted, folder)
    resume.mark_whole(folder, asked, checkout.commit())
    return True


def keep(asked: SaspRequest, folder: Path, small_form: Path) -> None:
    """Write what was recorded of each arm as one file. Raises OSError, ValueError."""
    small_form.mkdir(parents=True, exist_ok=True)
    for training in asked.trainings:
        read(folder / training.name).rounded().write(file_of(small_form, training.name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 done, 1 failed."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.sasp.delays", description=__doc__)
    parser.add_argument("--task", nargs="+", choices=TASK_NAMES, default=TASK_NAMES)
    parser.add_argument("--over", nargs="+", choices=get_args(Transport), default=get_args(Transport))
    parser.add_argument("--arm", nargs="+", choices=list(ARMS), default=list(ARMS))
    parser.add_argument("--ratio", type=float, default=1.0, help="communication as a share of computing (1)")
    parser.add_argument("--out", type=Path, default=Path("results/sasp-delays"))
    parser.add_argument("--small-form", type=Path, metavar="FOLDER", help="write each arm's there as one file")
    parser.add_argument("--datapath", choices=get_args(Wanted), default=DATAPATH, help="the emulated switches' (user)")
    options = parser.parse_args(arguments)
    try:
        with ending_signals(), one_line_errors():
            for task in options.task:
                for transport in options.over:
                    of_task = Path(f"{task}-{transport}")
                    folder = at_ratio(options.out, options.ratio) / of_task
                    asked = request(task, transport, options.ratio, options.arm)
                    new = record(asked, options.datapath, folder)
                    if options.small_form is not None:
                        keep(asked, folder, at_ratio(options.small_form, options.ratio) / of_task)
                    sys.stderr.write(f"{folder}: {'recorded' if new else 'it is there'}\n")
    except (*EXPECTED_ERRORS, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
