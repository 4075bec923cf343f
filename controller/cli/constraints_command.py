"""``trainyard constraints``: the paths of the files that installing the controller needs."""

from __future__ import annotations

import argparse
import sys

from controller import constraints


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "constraints",
        help="the files that installing the controller needs",
        description="Print the paths of the files that installing the controller needs: uv pip install "
        '--override "$(trainyard constraints override)" --build-constraint "$(trainyard constraints build)" '
        "'trainyard[controller]'",
    )
    parser.add_argument("kind", nargs="?", choices=constraints.KINDS, help="print the path of this file alone")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print one path, or the name and path of each file."""
    if options.kind is not None:
        sys.stdout.write(f"{constraints.path(options.kind)}\n")
        return 0
    for kind in constraints.KINDS:
        sys.stdout.write(f"{kind:8}  {constraints.path(kind)}\n")
    return 0
