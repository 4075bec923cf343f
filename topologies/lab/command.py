"""``trainyard lab``: run an experiment file on an emulated network, under one policy or several in turn."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from controller.enforcement import Identity
from topologies.box.datapath import Wanted
from topologies.experiments.addressing import Families

if TYPE_CHECKING:
    from rich.table import Table

    from topologies.experiments.experiment import Experiment
    from topologies.lab.results import LabResult, PolicyChoice

FAILED, WRONG_INPUT = 1, 2


def add_command(commands: Any) -> None:
    """Add ``lab`` to ``trainyard``'s subcommands (argparse's subparsers)."""
    parser = commands.add_parser(
        "lab", help="run an experiment on an emulated network of this machine, with real traffic"
    )
    parser.add_argument("spec", type=Path, metavar="SPEC", help="the experiment's file, YAML or JSON")
    parser.add_argument(
        "--policy",
        action="append",
        required=True,
        metavar="P",
        help="a policy to run; repeat this option to compare several",
    )
    parser.add_argument(
        "--datapath", choices=get_args(Wanted), default="auto", help="the datapath of the emulated switches"
    )
    parser.add_argument(
        "--addresses",
        choices=get_args(Families),
        help="the families of the hosts' addresses, in the place of the experiment's",
    )
    parser.add_argument(
        "--rails",
        type=int,
        metavar="N",
        help="how many interfaces each host has, with a switch for each, in the place of the experiment's",
    )
    parser.add_argument(
        "--identity",
        choices=get_args(Identity),
        default="flows",
        help="how switches know a job: by its flows, by the DSCP of its class, or by a DSCP that it has for its life",
    )
    parser.add_argument(
        "--results", type=Path, default=None, metavar="FOLDER", help="results folder; the default is results/lab/NAME"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    parser.set_defaults(run=run)


def load_experiment(path: Path) -> Experiment:
    """Read an experiment. Raises ConfigError, which names the file, the line and the field."""
    from controller.documents.document import field_name
    from controller.documents.mapping_file import ConfigError
    from simulator.workloads import curves
    from topologies.experiments.experiment_file import read_with_lines

    experiment, document = read_with_lines(path)
    recorded = {curve.name: curve.iterations for curve in curves.index()}
    for study_number, study in enumerate(experiment.studies):
        for number, name in enumerate(study.configurations):
            if name not in recorded:
                field = ("studies", study_number, "configurations", number)
                raise ConfigError(
                    f"{path}:{document.line(field)}: {field_name(field)}: there is no curve {name!r}; "
                    "simulator/workloads/curves/index.csv lists them"
                )
    replayed = [("jobs", i, job.curve, job.iterations) for i, job in enumerate(experiment.jobs) if job.trial is None]
    replayed += [("earlier", i, job.curve, job.iterations) for i, job in enumerate(experiment.earlier)]
    for section, number, curve, iterations in replayed:
        if (fault := _curve_fault(curve, iterations, recorded)) is not None:
            where = (section, number, "curve")
            raise ConfigError(f"{path}:{document.line(where)}: {field_name(where)}: {fault}")
    return experiment


class OptionError(ValueError):
    """An option does not fit the experiment. The message says what would be right."""


def _with_options(experiment: Experiment, options: argparse.Namespace) -> Experiment:
    """Returns the experiment with what the command line says of its network. Raises OptionError."""
    from pydantic import ValidationError

    from controller.documents.faults import described, in_lines

    given = {name: value for name in ("addresses", "rails") if (value := getattr(options, name)) is not None}
    if not given:
        return experiment
    fields = experiment.model_dump() | given
    try:
        return type(experiment).model_validate(fields)
    except ValidationError as error:
        raise OptionError(f"--{in_lines(described(error, fields, type(experiment)))[0]}") from error


def choices(options: argparse.Namespace) -> tuple[PolicyChoice, ...]:
    """Returns what the command line says to run, one arm after the other."""
    from topologies.lab.results import PolicyChoice

    return tuple(PolicyChoice(policy, identity=options.identity) for policy in options.policy)


def _curve_fault(curve: str | tuple[float, ...], iterations: int, recorded: Mapping[str, int]) -> str | None:
    """Returns why a curve cannot be replayed over so many iterations; None where it can.

    ``recorded`` has the rows of each recorded curve, by name.
    """
    if isinstance(curve, str) and curve not in recorded:
        near = difflib.get_close_matches(curve, recorded, n=1)
        hint = f"did you mean {near[0]}?" if near else "simulator/workloads/curves/index.csv lists them"
        return f"there is no curve {curve!r}; {hint}"
    name, rows = (curve, recorded[curve]) if isinstance(curve, str) else ("the curve", len(curve))
    return f"{name} has {rows} iterations, not {iterations}" if iterations > rows else None


def run(options: argparse.Namespace) -> int:
    """Run the command. Exit status: 0 done, 1 failed, 2 wrong input, 130 stopped by Ctrl-C."""
    from rich.console import Console

    from controller.documents.mapping_file import ConfigError
    from controller.policies.registry import PolicyError, make
    from simulator.reports.terminal import output
    from topologies.lab.bars import Bars
    from topologies.signals import ending_signals

    console = Console(stderr=True)
    try:
        experiment = _with_options(load_experiment(options.spec), options)
        for policy in options.policy:
            make(policy)
    except (ConfigError, PolicyError, OptionError) as error:
        sys.stderr.write(f"{error}\n")
        return WRONG_INPUT
    try:
        from topologies.lab import lab
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"lab: {error.name} is not installed; install it with: sudo apt-get install mininet openvswitch-switch\n"
        )
        return FAILED

    folder = options.results or Path("results") / "lab" / experiment.name
    try:
        with ending_signals(), Bars(console) as bars:
            result = lab.run_arms(experiment, choices(options), options.datapath, bars.show, folder)
    except lab.EXPECTED_ERRORS as error:
        console.print(f"lab: {error}", style="red", markup=False, highlight=False)
        return WRONG_INPUT if isinstance(error, lab.LabInputError) else FAILED
    except (KeyboardInterrupt, SystemExit) as stopped:
        console.print("lab: stopped; everything was taken down", markup=False, highlight=False)
        if isinstance(stopped, SystemExit):
            raise
        return 130
    if options.json:
        sys.stdout.write(json.dumps(asdict(result), indent=1) + "\n")
    else:
        output().print(table(result))
        sys.stdout.write(f"logs and histories: {folder}\n")
    return 0


def table(result: LabResult) -> Table:
    """Return a table of the mean times of every arm. A censored job counts for as long as it was observed."""
    from rich.table import Table

    from topologies.lab import comparison

    network = f"{result.topology} of {result.hosts} hosts"
    if result.rails > 1:
        network += f" with {result.rails} rails"
    if result.addresses != "ipv4":
        network += {"ipv6": ", IPv6", "both": ", IPv4 and IPv6"}[result.addresses]
    times = Table(title=f"{network}, {result.link_bps / 1e6:g} Mbit/s, datapath {result.datapath}")
    for name in ("policy", "mean t90 (s)", "mean t95 (s)", "mean JCT (s)", "censored", "report to rule p99 (ms)"):
        times.add_column(name, justify="left" if name == "policy" else "right")
    for arm in result.arms:
        p99 = arm.control.report_to_rule_p99
        times.add_row(
            arm.policy,
            *(f"{comparison.mean(arm, measure):.1f}" for measure in comparison.MEASURES),
            str(len(comparison.censored(arm))),
            "-" if p99 is None else f"{p99 * 1e3:.0f}",
        )
    return times
