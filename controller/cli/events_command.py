"""``trainyard events``: what changes, as it happens."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from controller.cli.output import fail, show_line

if TYPE_CHECKING:
    from controller.cli.client import Client

PATH = "/v1/events"
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 10.0
"""Wait so long before the stream is asked for again, twice as long each time that there is none."""
Connect = Callable[[argparse.Namespace], "Client"]
Data = dict[str, Any]


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the command's parser. ``connect`` returns the client that the options of ``remote`` name."""
    parser = commands.add_parser("events", parents=[remote], help="what changes, as it happens; --json: a line each")
    parser.add_argument("--since", metavar="ID", default="", help="begin after the event with this id; 0: all kept")
    parser.set_defaults(run=lambda options: run_events(options, connect))


def run_events(options: argparse.Namespace, connect: Connect) -> int:
    """Show events until Ctrl-C. Where the stream ends, go on with the next event as soon as there is a stream again."""
    from controller.cli.client import UnreachableError

    last, pause, has_begun = options.since, FIRST_PAUSE_SECONDS, False
    while True:
        try:
            for sent in connect(options).follow(PATH, last):
                last, pause, has_begun = sent.last, FIRST_PAUSE_SECONDS, True
                if sent.data is not None:
                    _show(sent.data, is_json=options.json)
        except UnreachableError as error:
            if not has_begun:
                raise
            fail(f"{error}; trying again", 0)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _show(text: str, *, is_json: bool) -> None:
    if is_json:
        show_line(text)
        return
    document = json.loads(text)
    moment = datetime.fromtimestamp(document["time"]).astimezone().isoformat(sep=" ", timespec="seconds")
    show_line(f"{moment}  {document['event']:8}  {describe(document['event'], document['data'])}")


def describe(event: str, data: Data) -> str:
    """Returns an event in a line."""
    words = _WORDS.get(event)
    return words(data) if words is not None else json.dumps(data)


def _plan(data: Data) -> str:
    order = " > ".join(" = ".join(f"{job} ({data['classes'].get(job, '-')})" for job in band) for band in data["order"])
    number = f"epoch {data['epoch']}, " if data["epoch"] is not None else ""
    return f"{number}{data['policy']}: {order or 'no jobs'}"


def _job(data: Data) -> str:
    progress = data["progress"]
    if progress is None:
        return f"{data['id']}: {data['state']}"
    total = progress["iterations_total"]
    parts = [data["state"], f"class {'-' if data['service_class'] is None else data['service_class']}"]
    parts.append(f"iteration {progress['iterations_done']:g}" + (f" of {total:g}" if total is not None else ""))
    if progress["last_metric"] is not None:
        parts.append(f"metric {progress['last_metric']:.4g}")
    for name, target in data["targets"].items():
        if target["iteration"] is not None:
            parts.append(f"{name} at {target['iteration']:.0f}")
    return f"{data['id']}: {', '.join(parts)}"


def _switch(data: Data) -> str:
    if not data["ready"]:
        return f"{data['dpid']}: not ready: {data['reason']}"
    return f"{data['dpid']}: {'; '.join(['ready', *data['problems']])}"


def _audit(data: Data) -> str:
    return f"{data['number']}: {data['who']}: {data['action']} {data.get('path', '')}: {data['outcome']}"


_WORDS: dict[str, Callable[[Data], str]] = {
    "plan": _plan,
    "job": _job,
    "stage": lambda data: f"{data['id']}: {data['state']}: {', '.join(data['jobs']) or 'no jobs'}",
    "host": lambda data: f"{data['name']}: {data['state']}",
    "switch": _switch,
    "problem": lambda data: f"{data['state']}: {data['problem']}",
    "audit": _audit,
    "gap": lambda data: f"the events {data['first']} to {data['last']} were missed",
}
