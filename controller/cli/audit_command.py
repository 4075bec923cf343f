"""``trainyard audit``: who has changed what, and whether the files of that are as they were written."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller.cli.output import CommandError, fail, show_document, show_facts, show_table, value_text

if TYPE_CHECKING:
    from controller.access.audit.verify import Verdict
    from controller.cli.client import Client
    from controller.wire import AuditRecord

PATH = "/v1/audit"
Connect = Callable[[argparse.Namespace], "Client"]


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the command's parser. ``connect`` returns the client that the options of ``remote`` name."""
    parser = commands.add_parser("audit", parents=[remote], help="who has changed what, and who was refused")
    parser.add_argument("--since", type=int, metavar="NUMBER", help="only records after the one with this number")
    parser.add_argument("--limit", type=int, metavar="COUNT", help="at most this many records; default: 100")
    parser.add_argument(
        "--verify",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="check the chain in these files, and in older ones beside them, instead of asking the controller",
    )
    parser.add_argument("--expect", metavar="HASH", help="with --verify: the record with this hash must be there")
    parser.set_defaults(run=lambda options: run_audit(options, connect))


def run_audit(options: argparse.Namespace, connect: Connect) -> int:
    """Show the records, or check files; returns 1 where a chain is broken."""
    if options.verify is not None:
        return _verify(options)
    if options.expect is not None:
        raise CommandError("audit: --expect needs --verify", 2)
    return _show(connect(options), options)


def _show(client: Client, options: argparse.Namespace) -> int:
    from controller.wire import AuditTrail

    query = {name: str(value) for name in ("since", "limit") if (value := getattr(options, name)) is not None}
    answer = client.get(PATH, AuditTrail, query)
    if options.json:
        return show_document(answer)
    show_table(("number", "time", "who", "from", "what", "outcome", "change"), map(_row, answer.records))
    if answer.problem is not None:
        fail(answer.problem, 0)
    return 0


def _row(record: AuditRecord) -> tuple[object, ...]:
    what = record.action
    if record.path is not None:
        what = f"{record.action.partition(' ')[0]} {record.path}"
    outcome = record.outcome if record.status is None else f"{record.outcome} ({record.status})"
    role = record.role if record.proof in (None, "none", "token") else f"{record.role}, by {record.proof}"
    who = record.who if role in (record.who, "none") else f"{record.who} ({role})"
    time = datetime.fromtimestamp(record.time).astimezone().isoformat(sep=" ", timespec="seconds")
    return record.number, time, who, record.address or "-", what, outcome, _change(record)


def _change(record: AuditRecord) -> str:
    """Returns in a line what differs, or why nothing does."""
    texts = [record.detail] if record.detail is not None else []
    before, after = record.before or {}, record.after or {}
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = (_short(value_text(side[name])) if name in side else "-" for side in (before, after))
        texts.append(f"{name}: {old} -> {new}")
    texts += [f"{count} {what}" for count, what in ((record.lost, "lost before"), (record.skipped, "skipped")) if count]
    return "; ".join(texts) or "-"


def _short(text: str) -> str:
    """Returns a text of at most 48 characters. A longer one loses its middle: certificates have their end behind."""
    return text if len(text) <= 48 else f"{text[:15]}...{text[-30:]}"


def _verify(options: argparse.Namespace) -> int:
    from controller.access.audit.files import files_of, lines_of
    from controller.access.audit.verify import Verifier

    verifier = Verifier()
    try:
        for path in _in_order(options.verify, files_of):
            verifier.add_file(str(path), lines_of(path))
    except OSError as error:
        raise CommandError(f"{error.filename}: cannot be read: {error.strerror}", 2) from None
    verdict = verifier.verdict()
    breaks = list(verdict.breaks)
    if options.expect is not None and options.expect not in verdict.hashes:
        breaks.append(f"no record has the hash {options.expect}: records at the end were removed, or all were replaced")
    if not verdict.records:
        breaks.append("there is no record in these files")
    return _show_verdict(verdict, breaks, is_json=options.json)


def _in_order(given: Iterable[Path], files_of: Callable[[Path], list[Path]]) -> list[Path]:
    """Returns the files and the older ones beside them, each once, by their first records."""
    from controller.access.audit.files import first_number

    files: dict[Path, int] = {}
    for path in given:
        for file in files_of(path) or [path]:
            files.setdefault(file.resolve(), first_number(file))
    return sorted(files, key=lambda file: files[file])


def _show_verdict(verdict: Verdict, breaks: list[str], *, is_json: bool) -> int:
    if is_json:
        from controller.cli.output import show_json

        last = verdict.last
        show_json(
            {
                "records": verdict.records,
                "first": verdict.first.number if verdict.first is not None else None,
                "last": last.number if last is not None else None,
                "last_hash": last.hash if last is not None else None,
                "breaks": breaks,
                "notes": list(verdict.notes),
            }
        )
        return 1 if breaks else 0
    if verdict.first is not None and verdict.last is not None:
        show_facts(
            [
                ("records", f"{verdict.records}, from {verdict.first.number} to {verdict.last.number}"),
                ("last hash", verdict.last.hash),
                *(("note", note) for note in verdict.notes),
                ("chain", "broken" if breaks else "whole"),
            ]
        )
    return fail("\n".join(breaks), 1, prefix="") if breaks else 0
