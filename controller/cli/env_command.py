"""``trainyard env``: the variables that hand a job its own DSCP when it is launched."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from controller.cli.output import CommandError, clean, show_beside, show_json, show_lines
from controller.job_environment import lines, variables

if TYPE_CHECKING:
    from controller.cli.client import Client
    from controller.wire import JobState

Connect = Callable[[argparse.Namespace], "Client"]
LOOK_SECONDS = 0.5
"""With --wait, ask again after this time."""


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the command's parser. ``connect`` returns the client that the options of ``remote`` name."""
    parser = commands.add_parser(
        "env",
        parents=[remote],
        help="the variables that hand a job its own DSCP when it is launched",
        description="Print the variables by which NCCL, RCCL, UCX and NVSHMEM learn a job's own DSCP (identity: dscp), "
        "a line NAME=value each. What sends by TCP needs none: agents mark its sockets.",
    )
    parser.add_argument("job", metavar="JOB", help="the name of the job")
    parser.add_argument("--export", action="store_true", help="print lines for a shell: export NAME=value")
    parser.add_argument(
        "--wait", metavar="SECONDS", type=float, default=0.0, help="wait so long for a job that is not known yet"
    )
    parser.set_defaults(run=lambda options: run_env(options, connect))


def run_env(options: argparse.Namespace, connect: Connect) -> int:
    """Print the variables of a job."""
    if options.export and options.json:
        raise CommandError("env: --export and --json are two forms of the same; give one of them", 2)
    client = connect(options)
    state = _state(client, options.job, options.wait)
    if state.dscp is None:
        raise CommandError(_why_none(state))
    for problem in state.problems:
        show_beside(clean(f"trainyard: job {state.id}: {problem}"))
    values = variables(state.dscp, state.acknowledgement_dscp)
    if options.json:
        return show_json({"job": state.id, "variables": {name: str(value) for name, value in values.items()}})
    return show_lines(lines(values, export=options.export))


def _state(client: Client, job: str, wait: float) -> JobState:
    """Returns a job. Raises CommandError where it is not known within ``wait`` seconds."""
    from controller.cli.client import NotFoundError
    from controller.wire import JobState

    deadline = time.monotonic() + wait
    while True:
        try:
            return client.get(f"/v1/jobs/{quote(job, safe='')}", JobState)
        except NotFoundError as error:
            left = deadline - time.monotonic()
            if left <= 0:
                raise CommandError(
                    f"{error}; a job is known once it is registered or an agent has found it", 2
                ) from None
        time.sleep(min(LOOK_SECONDS, left))


def _why_none(state: JobState) -> str:
    """Returns why a job has no DSCP of its own, and what would give it one."""
    if state.state == "ended":
        return f"job {state.id} has ended, and its DSCP may be another job's by now"
    return (
        f"job {state.id} has no DSCP of its own: with identity: dscp in the controller's settings each job has one; "
        "without it, launch the job without these variables"
    )
