"""``trainyard explain``: why a job has its class, what it waits for, and what would help."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from controller.cli.explain.facts import facts
from controller.cli.explain.tries import tries
from controller.cli.output import show_document, show_facts

if TYPE_CHECKING:
    from controller.cli.client import Client

Connect = Callable[[argparse.Namespace], "Client"]
_CHANGES = ("policy", "weight", "weights", "target")


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the command's parser. ``connect`` returns the client that the options of ``remote`` name."""
    parser = commands.add_parser("explain", parents=[remote], help="why a job has its class, and what it waits for")
    parser.add_argument("job", metavar="JOB", help="the name of the job")
    changes = parser.add_argument_group("as it would be, without applying it")
    changes.add_argument("--policy", metavar="NAME", help="under this policy")
    weight = changes.add_mutually_exclusive_group()
    weight.add_argument("--weight", metavar="NUMBER", help="with this weight of the job")
    weight.add_argument("--weights", metavar="NUMBERS", help="with each of these weights, such as 2,4; at most 8")
    changes.add_argument("--target", metavar="VALUE", help="with this value of its metric as its target")
    parser.set_defaults(run=lambda options: run_explain(options, connect))


def run_explain(options: argparse.Namespace, connect: Connect) -> int:
    """Show why a job has its class."""
    from controller.wire import Explanation

    changes = {name: getattr(options, name) for name in _CHANGES}
    query = {name: value for name, value in changes.items() if value is not None}
    answer = connect(options).get(f"/v1/jobs/{quote(options.job)}/explain", Explanation, query)
    if options.json:
        return show_document(answer)
    return show_facts([*_applied(query), *tries(answer, query), *facts(answer)])


def _applied(query: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns a line which says that no change is applied. With several weights, the facts below are those of now."""
    if not query:
        return []
    said = " and ".join(f"{name} {value}" for name, value in query.items())
    if "weights" in query:
        return [("applied", f"no: tried with {said}; what stands below the tries is as it is now")]
    return [("applied", f"no: as it would be with {said}")]
