"""``trainyard console [FOLDER ...]``: the console in a browser."""

from __future__ import annotations

import argparse
import contextlib
import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller.cli.console.recordings import DEEPEST, EVENTS, Recording, find_runs, read_run
from controller.cli.console.server import SiteServer
from controller.cli.console.site import Site
from controller.cli.output import CommandError, fail, show_json, show_line
from controller.console.static import static_files

if TYPE_CHECKING:
    from controller.cli.client import Client

MOST = 8
"""Show at most so many recorded runs at a time."""
Connect = Callable[[argparse.Namespace], "Client"]


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the command's parser. ``connect`` returns the client that the options of ``remote`` name."""
    parser = commands.add_parser(
        "console", parents=[remote], help="the console in a browser: of a running controller, or of recorded runs"
    )
    parser.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="FOLDER",
        help=f"a recorded run, or a folder of runs, each with {EVENTS}",
    )
    parser.add_argument(
        "--port", type=int, default=0, metavar="PORT", help="serve recorded runs at this port; default: a free one"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    parser.set_defaults(run=lambda options: run_console(options, connect))


def run_console(options: argparse.Namespace, connect: Connect) -> int:
    """Open the console. With recorded runs it is served until Ctrl-C."""
    if not options.folders:
        return _show_live(options, connect)
    with contextlib.ExitStack() as stack:
        recordings = read_all(options.folders)
        for recording in recordings:
            stack.callback(recording.close)
        _serve(recordings, options)
    return 0


def _serve(recordings: Sequence[Recording], options: argparse.Namespace) -> None:
    """Serve recorded runs until Ctrl-C."""
    try:
        server = SiteServer(Site(static_files(), recordings), options.port)
    except (OSError, OverflowError) as error:
        raise CommandError(f"cannot serve at port {options.port}: {error}; choose another by --port", 2) from None
    with server:
        _say(recordings, server.url, options)
        if not options.no_browser:
            # In a thread: a browser in the terminal would not return before it has had its answers.
            threading.Thread(target=_open, args=(server.url,), daemon=True).start()
        server.serve_forever()


def _say(recordings: Sequence[Recording], url: str, options: argparse.Namespace) -> None:
    if options.json:
        show_json({"url": url, "recordings": [recording.name for recording in recordings]})
        return
    for recording in recordings:
        events = recording.events.count
        count = f"{events} event{'s' if events != 1 else ''}"
        show_line(f"{recording.title}: {recording.seconds:.0f} s, {count} ({recording.name})")
    show_line(f"the console is at {url}  (Ctrl-C ends it)")


def _show_live(options: argparse.Namespace, connect: Connect) -> int:
    from controller.wire import Readiness

    connect(options).get("/healthz", Readiness)
    url = f"{options.url.rstrip('/')}/"
    if options.json:
        show_json({"url": url})
    else:
        show_line(f"the console is at {url}")
    if not options.no_browser:
        _open(url)
    return 0


def _open(url: str) -> None:
    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(url)


def read_all(folders: Sequence[Path]) -> list[Recording]:
    """Returns the recorded runs of all folders, and says on stderr what is left out. Raises CommandError."""
    runs = [(run, _name(folder, run)) for folder in folders for run in _found(folder)]
    if len(runs) > MOST:
        others = ", ".join(name for _, name in runs[MOST:])
        fail(f"{MOST} recorded runs are shown, which is the most; left out: {others}", 0)
    recordings = []
    for run, name in runs[:MOST]:
        try:
            recordings.append(read_run(run, name))
        except OSError as error:
            raise CommandError(f"{error.filename}: cannot be read: {error.strerror}", 2) from None
    for recording in recordings:
        for problem in recording.problems:
            fail(problem, 0)
    return recordings


def _found(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise CommandError(f"{folder}: there is no such folder", 2)
    try:
        runs = find_runs(folder)
    except OSError as error:
        raise CommandError(f"{error.filename}: cannot be read: {error.strerror}", 2) from None
    if not runs:
        where = f"neither it nor a folder up to {DEEPEST} below it has a file {EVENTS}"
        raise CommandError(f"{folder}: {where}; scripts/demo and trainyard lab record one for each policy", 2)
    return runs


def _name(folder: Path, run: Path) -> str:
    """Returns the name of a run: its place below the folder that was given, or else that folder's own name."""
    return run.relative_to(folder).as_posix() if run != folder else folder.resolve().name
