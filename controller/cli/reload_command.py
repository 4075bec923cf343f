"""``trainyard reload``: puts a changed settings file in force."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from controller.cli.output import show_document, show_facts, value_text

if TYPE_CHECKING:
    from controller.cli.client import Client
    from controller.wire import SettingChange


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Callable[..., Client]) -> None:
    """Add the command to the parser. ``remote`` has the options of a client, which ``connect`` makes of them."""
    command = commands.add_parser(
        "reload", parents=[remote], help="have the controller read its settings file, tokens and certificates again"
    )
    command.set_defaults(run=lambda options: run(options, connect(options)))


def run(options: argparse.Namespace, client: Client) -> int:
    """Put the file in force, and show what has changed."""
    from controller.wire import ReloadAnswer

    answer = client.post("/v1/reload", ReloadAnswer)
    if options.json:
        return show_document(answer)
    facts = [("settings", f"SHA-256 {answer.sha256}"), *_facts("changed", answer.changed)]
    if not answer.changed:
        facts.append(("changed", "nothing"))
    return show_facts([*facts, *_facts("needs a restart", answer.waiting)])


def _facts(word: str, changes: Sequence[SettingChange]) -> list[tuple[str, str]]:
    return [(word, f"{change.field}: {value_text(change.before)} -> {value_text(change.after)}") for change in changes]
