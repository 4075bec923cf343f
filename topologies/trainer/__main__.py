"""``python -m topologies.trainer``: the trainer of one host.

The exit status is 0 where no job of this host failed (the limit or a signal may have stopped jobs), 1 where a job
failed, and 2 for wrong input.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

from controller.documents.mapping_file import ConfigError
from topologies.experiments.addressing import Subnet
from topologies.experiments.experiment import Experiment
from topologies.experiments.experiment_file import read_quickly
from topologies.trainer.runner import InputError, Options, run
from topologies.trainer.start import Meeting

LATEST_START = 4e9
"""Refuse a start after this moment (in the year 2096), because a clock cannot hold every number."""
LONGEST_PATIENCE = 1e6
"""Refuse to wait for more than this many seconds."""
SWITCH_SECONDS = 1.0
"""Let a thread keep Python's interpreter for this many seconds before it must hand it over."""


def load_experiment(path: Path) -> Experiment:
    """Returns the experiment in a JSON or YAML file. Raises InputError with file, line and field of each fault."""
    try:
        return read_quickly(path)
    except ConfigError as error:
        raise InputError(str(error)) from error


def _seconds(most: float) -> Callable[[str], float]:
    def seconds(text: str) -> float:
        value = float(text)
        if not 0 <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0 to {most:.0f}")
        return value

    return seconds


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a whole number above 0")
    return value


def _subnet(text: str) -> Subnet:
    try:
        return ip_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    arguments = argparse.ArgumentParser(prog="python -m topologies.trainer", description=__doc__)
    arguments.add_argument(
        "--experiment", type=Path, required=True, metavar="FILE", help="the experiment's file, JSON or YAML"
    )
    arguments.add_argument("--host", required=True, help="the name of this host: h1, h2, ...")
    when = arguments.add_mutually_exclusive_group()
    when.add_argument(
        "--start",
        type=_seconds(LATEST_START),
        metavar="EPOCH_SECONDS",
        help="the experiment's start; the default is now",
    )
    when.add_argument(
        "--meet",
        type=Path,
        metavar="FOLDER",
        help="leave a file in this folder when all is ready, and wait until its file `start` holds the start",
    )
    arguments.add_argument("--dir", type=Path, required=True, help="folder for logs, jobs.d and done")
    arguments.add_argument("--job", metavar="ID", help="run only this job")
    arguments.add_argument("--iterations-cap", type=_positive, metavar="N", help="end every job after N iterations")
    arguments.add_argument(
        "--address-base",
        type=_subnet,
        action="append",
        default=[],
        metavar="IP",
        help="host hN has this address + N; give it once for each rail; the default is the experiment's addresses",
    )
    arguments.add_argument(
        "--connect-seconds",
        type=_seconds(LONGEST_PATIENCE),
        default=60.0,
        metavar="S",
        help="how long a job waits for its peers",
    )
    return arguments


def _start(options: argparse.Namespace) -> float | Meeting:
    if options.meet is not None:
        return Meeting(options.meet)
    return time.time() if options.start is None else float(options.start)


def main() -> int:
    """Run the trainer of one host. Returns the exit status."""
    options = parser().parse_args()
    # The threads wait for the network and compute nothing. A thread that waits for the interpreter asks for it again
    # and again, which alone would keep a processor busy.
    sys.setswitchinterval(SWITCH_SECONDS)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format=f"%(asctime)s trainer {options.host}: %(levelname)s %(message)s"
    )
    try:
        went_well = run(
            Options(
                experiment=load_experiment(options.experiment),
                host=options.host,
                start=_start(options),
                directory=options.dir,
                subnets=tuple(options.address_base),
                job=options.job,
                cap=options.iterations_cap,
                connect_seconds=options.connect_seconds,
            )
        )
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
