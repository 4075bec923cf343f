"""``trainyard families``: the runs of earlier jobs that the controller keeps, and what they say of the next one."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from controller.cli.output import CommandError, show_document, show_facts, show_table

if TYPE_CHECKING:
    from controller.cli.client import Client
    from controller.wire import FamilyRun, FamilyState, FamilySummary

PATH = "/v1/families"
Connect = Callable[[argparse.Namespace], "Client"]


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the command's parser. ``connect`` returns the client that the options of ``remote`` name."""
    parser = commands.add_parser("families", parents=[remote], help="earlier runs, and what they say of the next one")
    parser.add_argument("name", nargs="?", metavar="NAME", help="show the runs of this family")
    parser.add_argument("--user", metavar="USER", help="only of this user")
    parser.add_argument("--delete", action="store_true", help="forget the family")
    parser.set_defaults(run=lambda options: run_families(options, connect))


def run_families(options: argparse.Namespace, connect: Connect) -> int:
    """Show all families, or the runs of one, or forget it."""
    if options.name is None and (options.delete or options.user is not None):
        raise CommandError("families: --delete and --user need the NAME of a family", 2)
    client = connect(options)
    if options.name is None:
        return _list(client, options)
    path = f"{PATH}/{quote(options.name, safe='')}"
    query = {"user": options.user} if options.user is not None else {}
    if options.delete:
        client.delete(path, query)
        return 0
    return _show(client, path, query, options)


def _list(client: Client, options: argparse.Namespace) -> int:
    from controller.wire import FamilyList

    answer = client.get(PATH, FamilyList)
    if options.json:
        return show_document(answer)
    rows = [(family.name, _owner(family), family.kept, family.summary) for family in answer.families]
    return show_table(("family", "owner", "runs", "summary"), rows)


def _show(client: Client, path: str, query: dict[str, str], options: argparse.Namespace) -> int:
    from controller.wire import FamilyRuns

    answer = client.get(path, FamilyRuns, query)
    if options.json:
        return show_document(answer)
    for family in answer.families:
        _show_family(family)
    return 0


def _show_family(family: FamilyState) -> None:
    show_facts([("family", family.name), ("owner", _owner(family)), ("summary", family.summary)])
    show_table(("job", "ending", "iterations", "metric", "90 % at", "95 % at", "why"), map(_row, family.runs))


def _row(run: FamilyRun) -> tuple[str, ...]:
    return (
        run.job,
        run.ending,
        f"{run.iterations:g}",
        "-" if run.converged is None else f"{run.metric} {run.converged:.4g}",
        *("-" if share is None else f"{100 * share:.2g} %" for share in (run.t90_share, run.t95_share)),
        run.reason or "-",
    )


def _owner(family: FamilySummary) -> str:
    if family.user is not None:
        return family.user
    return f"host {family.host}" if family.host is not None else "operators"
