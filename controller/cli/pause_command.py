"""``trainyard pause`` and ``trainyard resume``: the off switch, and its other position."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from controller.cli.output import show_document, show_facts

if TYPE_CHECKING:
    from controller.cli.client import Client

PATH = "/v1/settings"
Connect = Callable[[argparse.Namespace], "Client"]


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add both commands' parsers. ``connect`` returns the client that the options of ``remote`` name."""
    pause = commands.add_parser(
        "pause", parents=[remote], help="enforce nothing from now on: gates close, marks and trees go; plans go on"
    )
    pause.set_defaults(run=lambda options: run_pause(options, connect, is_paused=True))
    resume = commands.add_parser("resume", parents=[remote], help="enforce the plan again after a pause")
    resume.set_defaults(run=lambda options: run_pause(options, connect, is_paused=False))


def run_pause(options: argparse.Namespace, connect: Connect, *, is_paused: bool) -> int:
    """Pause or resume, and show what holds now."""
    from controller.wire import Settings

    answer = connect(options).patch(PATH, Settings(pause=is_paused), Settings)
    if options.json:
        return show_document(answer)
    words = "nothing is enforced; jobs and plans go on (trainyard resume ends this)"
    return show_facts([("paused", words)] if answer.pause else [("resumed", "the plan is enforced again")])
