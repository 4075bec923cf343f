"""``trainyard token``: makes a token, and the line of the tokens file that lets it in."""

from __future__ import annotations

import argparse
import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from controller.cli.output import CommandError, show_beside, show_lines

ROLES = ("operator", "viewer", "tenant", "host", "enrol")
MAX_DAYS = 36_500


def add_command(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "token",
        help="make a token: the token goes to the standard output, and its line for api.tokens_file to standard error",
    )
    add = parser.add_argument
    add("--role", choices=ROLES, default="viewer", help="what its owner may do; default: viewer")
    add("--name", metavar="NAME", help="whose it is; for a host: the host's name; default: the role and a number")
    add("--expires", metavar="DAYS", type=int, help="how many days it is valid; default: for ever")
    add("--user", metavar="USER", action="append", default=[], help="of a tenant: a user whose jobs it has; repeatable")
    add("--prefix", metavar="TEXT", help="of a tenant: its jobs have names that begin so")
    add("--max-jobs", metavar="N", type=int, help="of a tenant: how many of its jobs may run at a time; default: 16")
    add("--max-weight", metavar="X", type=float, help="of a tenant: the greatest weight of a job; default: 1")
    add(
        "--hash",
        action="store_true",
        help="make none, but read one from the standard input, and print only its line, on the standard output",
    )
    parser.set_defaults(run=run_token)


def run_token(options: argparse.Namespace) -> int:
    """Make a token, or hash one, and print its line for the file."""
    from controller.access.tokens.hashes import WeakTokenError, hashed, new_token

    if options.name is None:
        options.name = f"{options.role}-{secrets.randbelow(10**6):06}"
    try:
        token = _given() if options.hash else new_token()
        line = _line(options, hashed(token))
    except WeakTokenError as error:
        raise CommandError(str(error), 2) from None
    if options.hash:
        return show_lines([line])
    show_beside(line)
    return show_lines([token])


def _given() -> str:
    """Returns the token on the standard input. It is never an argument: others can read those in the process list."""
    from controller.documents import text_file

    try:
        return text_file.read(Path("-"), holds="a token", most_bytes=65_536).strip()
    except text_file.FileError as error:
        raise CommandError(str(error), 2) from None


def _line(options: argparse.Namespace, text_hash: str) -> str:
    """Returns the entry of a tokens file in one line. Raises CommandError where the file would be refused."""
    from controller.access.tokens.entries import parse
    from controller.documents.document import Document

    wanted = {
        "role": options.role,
        "users": options.user or None,
        "prefix": options.prefix,
        "max_jobs": options.max_jobs,
        "max_weight": options.max_weight,
        "expires": _last_day(options.expires) if options.expires is not None else None,
        "hash": text_hash,
    }
    entry = {key: value for key, value in wanted.items() if value is not None}
    # Which hosts there are, only the settings say.
    _, faults = parse(Document({options.name: entry}, lambda paths: [1] * len(paths)), [options.name])
    if faults:
        at, said = faults[0]
        raise CommandError(f"{'.'.join(map(str, at[1:])) or 'name'}: {said}", 2)
    members = ", ".join(f"{key}: {json.dumps(value)}" for key, value in entry.items())
    return f"{options.name}: {{{members}}}"


def _last_day(days: int) -> str:
    if not 0 <= days <= MAX_DAYS:
        raise CommandError(f"--expires takes 0 to {MAX_DAYS} days", 2)
    return (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
