"""``host-reporter check``: looks at this host, and prints a line for each check.

Exit status: 0 all that is needed is there, 1 something is missing, 2 wrong input.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from host_reporter.address import address_of
from host_reporter.check import controller, found, interface, job_files, kernel, overlays, rdma, rights
from host_reporter.check.verdict import Verdict, exit_status, lines, note
from host_reporter.options import Options, OptionsError, read_options
from host_reporter.uplink.connection import AddressError

Check = Callable[[Options], Iterable[Verdict]]
"""Looks at one thing, and changes nothing."""
WRONG_INPUT = 2
JSON = "--json"

CHECKS: tuple[Check, ...] = (
    rights.check,
    kernel.check,
    interface.check,
    overlays.check,
    rdma.check,
    job_files.check,
    found.check,
)
"""The checks of this host itself, in the order in which they are shown."""


def main(arguments: Sequence[str]) -> int:
    """Look at this host with the agent's ``arguments``. Returns the exit status."""
    try:
        options = read_options([argument for argument in arguments if argument != JSON], dict(os.environ))
        address = address_of(options)
    except (OptionsError, AddressError) as error:
        sys.stderr.write(f"host-reporter: {error}\n")
        return WRONG_INPUT

    def of_controller(options: Options) -> Iterator[Verdict]:
        return controller.check(options, address)

    verdicts = list(run(options, [*CHECKS, of_controller]))
    if JSON in arguments:
        document = {"host": options.host, "checks": [verdict._asdict() for verdict in verdicts]}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines(verdicts)))
    return exit_status(verdicts)


def run(options: Options, checks: Iterable[Check]) -> Iterator[Verdict]:
    """Yields what all checks find. A fault of one does not end the others."""
    for check in checks:
        try:
            yield from check(options)
        except Exception as error:
            name = check.__module__.rpartition(".")[2]
            yield note(name, f"it could not be looked at: {type(error).__name__}: {error}")
