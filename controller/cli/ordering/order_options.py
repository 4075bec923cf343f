"""The options of ``trainyard order``. The command is loaded when it runs, because its solvers load slowly."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_command(commands: Any) -> None:
    """Add ``order`` to the subparsers of ``trainyard``."""
    parser = commands.add_parser("order", help="order the jobs of a snapshot file offline")
    parser.add_argument("file", type=Path, metavar="FILE", help="the snapshot, JSON; -: the standard input")
    parser.add_argument("--policy", required=True, metavar="NAME", help="the policy that orders them")
    parser.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="an option of the policy; may be repeated"
    )
    parser.add_argument(
        "--assign",
        choices=("layered", "top"),
        default="layered",
        help="how the order is cut into classes; default: layered",
    )
    parser.add_argument(
        "--bound",
        choices=("dual", "linear", "exact"),
        default="dual",
        help="the lower bound beside the objective: each of these is at least as tight as the one before it and takes "
        "longer; exact: at most 12 jobs; default: dual",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command, and returns its exit status."""
    from controller.cli.ordering.order import run_order

    return run_order(options)
