"""``trainyard top``: the running controller in a terminal, live; ``--once``: one picture, for scripts."""

from __future__ import annotations

import argparse
import queue
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from controller.cli.output import CommandError, show_json, show_lines
from controller.quantities import duration

if TYPE_CHECKING:
    from controller.cli.client import Client
    from controller.cli.top.terminal import Terminal
    from controller.cli.top.threads import Message
    from controller.cli.top.watch import Watch

FRAME_SECONDS = 0.5
"""Show a frame at most so often."""
PLAIN_WIDTH = 120
"""The width of a picture that goes to no terminal, unless COLUMNS says another."""
Connect = Callable[[argparse.Namespace], "Client"]


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the command's parser. ``connect`` returns the client that the options of ``remote`` name."""
    parser = commands.add_parser("top", parents=[remote], help="the running controller in a terminal, live; q ends it")
    parser.add_argument("--once", action="store_true", help="print one picture as plain text; so does --json, as JSON")
    parser.set_defaults(run=lambda options: run_top(options, connect))


def run_top(options: argparse.Namespace, connect: Connect) -> int:
    """Show the controller until q or Ctrl-C, or once."""
    if options.once or options.json:
        return _show_once(connect(options), is_json=options.json)
    from controller.cli.top.terminal import Terminal

    terminal = Terminal()
    if not terminal.is_usable:
        raise CommandError("top needs a terminal that can show whole pictures; --once prints one picture", 2)
    _watch(terminal, connect, options)
    return 0


def _show_once(client: Client, *, is_json: bool) -> int:
    from controller.cli.top.calls import Caller
    from controller.cli.top.document import document
    from controller.cli.top.frame import Paper, frame
    from controller.cli.top.picture import Picture, after_reading

    now = time.monotonic()
    picture = after_reading(Picture(), Caller(client).read(with_jobs=True), now)
    if is_json:
        return show_json(document(picture))
    paper = Paper(shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns)
    return show_lines("".join(text for text, _ in line).rstrip() for line in frame(picture, now, paper))


def _watch(terminal: Terminal, connect: Connect, options: argparse.Namespace) -> None:
    """Show frames until q. Raises CommandError where there is nothing to watch."""
    from controller.cli.top.calls import Caller
    from controller.cli.top.threads import Follower, Reader
    from controller.cli.top.watch import Watch

    messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
    watch = Watch(time.monotonic())
    # Without a controller at the start this is an error, and no empty picture.
    caller = Caller(connect(options))
    watch.was_read(caller.read(with_jobs=True), time.monotonic())
    # A session of requests is for one thread.
    follower, reader = Follower(connect(options), messages), Reader(caller, messages)
    follower.start()
    reader.start()
    try:
        with terminal.taken():
            _show(terminal, watch)
            while not _is_ended(terminal):
                _take(messages, watch)
                is_wanted, with_jobs = watch.wants(time.monotonic())
                if is_wanted:
                    reader.ask(with_jobs=with_jobs)
                _show(terminal, watch)
    finally:
        follower.stop()


def _is_ended(terminal: Terminal) -> bool:
    """Wait until the next frame is due; returns whether q was pressed meanwhile."""
    due = time.monotonic() + FRAME_SECONDS
    while (left := due - time.monotonic()) > 0:
        if "q" in terminal.key(left).lower():
            return True
    return False


def _take(messages: queue.SimpleQueue[Message], watch: Watch) -> None:
    """Take all that the threads have told. Raises CommandError where they cannot go on."""
    from controller.cli.top.threads import Connected, Failed, Lost, Told

    while not messages.empty():
        message, now = messages.get(), time.monotonic()
        if isinstance(message, Connected):
            watch.connected(now)
        elif isinstance(message, Told):
            try:
                watch.told(message.text, now)
            except (KeyError, ValueError):
                raise CommandError("the controller's events are not those of this version of trainyard") from None
        elif isinstance(message, Lost):
            watch.lost(message.why, now)
        elif isinstance(message, Failed):
            raise message.error
        else:
            watch.was_read(message.reading, now)


def _show(terminal: Terminal, watch: Watch) -> None:
    from controller.cli.top.frame import frame

    now = time.monotonic()
    gone = None
    if watch.gone_since is not None:
        gone = f"controller gone since {duration(int(now - watch.gone_since))}; trying again ({watch.why_gone})"
    terminal.show(frame(watch.picture, now, terminal.paper, gone=gone))
