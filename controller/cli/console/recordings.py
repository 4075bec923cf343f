"""Recorded runs on a disk: where they are, and what is in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from controller.cli.console.events_file import EventsFile
from controller.cli.console.explanations_file import ExplanationsFile
from controller.cli.console.lines import parsed

EVENTS, FACTS, EXPLANATIONS = "events.jsonl", "facts.json", "explanations.jsonl"
DEEPEST = 4
"""Look for recorded runs at most so many folders below the one that is given."""
ALONE = "alone"
"""The folder in which the lab keeps its runs of each job alone. They are no arms to compare, and shown only by name."""


class Recording(NamedTuple):
    """A recorded run. ``name`` is its place, and ``title`` what it is called.

    ``seconds`` is its length; ``policy`` is None where no plan was recorded. ``facts`` is the path of its facts, and
    None where there are none. ``problems`` says what is left out, a sentence each.
    """

    name: str
    title: str
    policy: str | None
    seconds: float
    events: EventsFile
    facts: Path | None
    explanations: ExplanationsFile | None
    problems: tuple[str, ...]

    def close(self) -> None:
        """Close its files."""
        self.events.close()
        if self.explanations is not None:
            self.explanations.close()


def find_runs(folder: Path) -> list[Path]:
    """Returns the folders of the recorded runs in a folder: itself, or those below it, in the order of their names.

    Runs of jobs alone are left out, unless ``folder`` is or lies in their folder.
    """
    return sorted(_runs(folder, DEEPEST), key=lambda run: run.relative_to(folder).parts)


def _runs(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / EVENTS).is_file():
        yield folder
    elif depth > 0:
        with os.scandir(folder) as entries:
            below = [Path(entry) for entry in entries if entry.name != ALONE and entry.is_dir(follow_symlinks=False)]
        for each in below:
            yield from _runs(each, depth - 1)


def read_run(folder: Path, name: str) -> Recording:
    """Returns the recorded run in a folder. Only its events must be there. Raises OSError."""
    problems = []
    events = EventsFile(folder / EVENTS)
    problems += _left_out(events)
    facts: Mapping[str, Any] = {}
    if (folder / FACTS).is_file():
        facts = parsed((folder / FACTS).read_bytes()) or {}
        if not facts:
            problems.append(f"{folder / FACTS}: it is no JSON object, and is left out")
    explanations = ExplanationsFile(folder / EXPLANATIONS) if (folder / EXPLANATIONS).is_file() else None
    if explanations is not None:
        problems += _left_out(explanations)
    return Recording(
        name=name,
        title=_text(facts.get("title")) or name,
        policy=_text(events.policy),
        seconds=_seconds(facts.get("seconds"), events.seconds),
        events=events,
        facts=folder / FACTS if facts else None,
        explanations=explanations,
        problems=tuple(problems),
    )


def _left_out(file: EventsFile | ExplanationsFile) -> list[str]:
    """Returns a sentence on the lines of a file that are left out; none where there are none."""
    if not file.wrong:
        return []
    more = f" (and {file.wrong - 1} more)" if file.wrong > 1 else ""
    return [f"{file.path}:{file.first_wrong}: this line{more} is not as it was recorded, and is left out"]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _seconds(told: object, last: float) -> float:
    """Returns how long a run is: as its facts say, or to its last event."""
    return float(told) if isinstance(told, int | float) else last
