"""``trainyard parse``: the options, and what is shown.

Exit status: 0 progress was read, 1 nothing was recognised, 2 the file cannot be read.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

DONE, NOTHING, WRONG_INPUT = 0, 1, 2
SHOWN_POINTS = 20
"""Show at most so many points of a run, unless all are asked for: the first half and the last."""


def add_command(commands: Any) -> None:
    """Add ``parse`` to ``trainyard``'s subcommands (argparse's subparsers)."""
    parser = commands.add_parser(
        "parse",
        help="what the agent would read from a log or another file",
        description="Read a log, CSV, JSON lines, trainer_state.json, or a folder of TensorBoard or MLflow as the "
        "agent does, and show the progress, the format, and why lines do not match.",
    )
    parser.add_argument("file", metavar="FILE", help="the file or folder; the newest one of a pattern in quotes")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--format", metavar="NAME", default="auto", help="the format; default: auto, which recognises it")
    how.add_argument("--try", dest="pattern", metavar="PATTERN", help="read the lines by this pattern of a job file")
    parser.add_argument("--metric", metavar="NAME", help="the metric, as progress.metric in a job file")
    parser.add_argument("--direction", choices=("max", "min"), help="which of its values are better")
    parser.add_argument("--all", action="store_true", help="show all points, not the first and last ones alone")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, and show what was read."""
    from controller.cli.output import fail
    from host_reporter.formats.matching import PatternError
    from host_reporter.formats.registry import FormatError
    from host_reporter.parsing import reading, shown

    path = Path(options.file).expanduser()
    reason = reading.obstacle(path)
    if reason is not None:
        return fail(f"{path}: {reason}", WRONG_INPUT)
    try:
        whole = reading.read(path, options.format, options.pattern, options.metric, options.direction)
    except (FormatError, PatternError) as error:
        return fail(str(error), WRONG_INPUT)
    most = None if options.all else SHOWN_POINTS
    shown.show_json(str(path), whole) if options.json else shown.show(str(path), whole, most)
    return DONE if whole.points else NOTHING
