"""Recorded runs on a disk: where they are, and what is in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from controller.cli.console.lines import from_the_first, parsed, read_lines

EVENTS, FACTS, EXPLANATIONS = "events.jsonl", "facts.json", "explanations.jsonl"
DEEPEST = 4
"""Look for recorded runs at most so many folders below the one that is given."""
_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    EVENTS: {"id": int, "event": str, "time": (int, float), "data": dict},
    EXPLANATIONS: {"time": (int, float), "job": str, "explanation": dict},
}
"""What each line of these files must have."""


class Recording(NamedTuple):
    """A recorded run. ``name`` is its place, ``title`` what it is called, and ``files`` has its files by their names.

    ``seconds`` is its length; ``events`` counts its events; ``policy`` is None where no plan was recorded. ``problems``
    says what is left out, a sentence each.
    """

    name: str
    title: str
    policy: str | None
    seconds: float
    events: int
    files: Mapping[str, bytes]
    problems: tuple[str, ...]


def find_runs(folder: Path) -> list[Path]:
    """Returns the folders of the recorded runs in a folder: itself, or those below it, in the order of their names."""
    return sorted(_runs(folder, DEEPEST), key=lambda run: run.relative_to(folder).parts)


def _runs(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / EVENTS).is_file():
        yield folder
    elif depth > 0:
        with os.scandir(folder) as entries:
            below = [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
        for each in below:
            yield from _runs(each, depth - 1)


def read_run(folder: Path, name: str) -> Recording:
    """Returns the recorded run in a folder. Only its events must be there. Raises OSError."""
    files, problems = {}, []
    events = from_the_first(read_lines((folder / EVENTS).read_bytes(), _FIELDS[EVENTS]))
    files[EVENTS] = events.kept
    problems += _left_out(folder / EVENTS, events.wrong)
    facts: Mapping[str, Any] = {}
    if (folder / FACTS).is_file():
        content = (folder / FACTS).read_bytes()
        facts = parsed(content) or {}
        if facts:
            files[FACTS] = content
        else:
            problems.append(f"{folder / FACTS}: it is no JSON object, and is left out")
    if (folder / EXPLANATIONS).is_file():
        explanations = read_lines((folder / EXPLANATIONS).read_bytes(), _FIELDS[EXPLANATIONS])
        files[EXPLANATIONS] = explanations.kept
        problems += _left_out(folder / EXPLANATIONS, explanations.wrong)
    policies = [each["data"].get("policy") for each in events.documents if each["event"] == "plan"]
    return Recording(
        name=name,
        title=_text(facts.get("title")) or name,
        policy=_text(policies[-1]) if policies else None,
        seconds=_seconds(facts.get("seconds"), [each["time"] for each in events.documents]),
        events=len(events.documents),
        files=files,
        problems=tuple(problems),
    )


def _left_out(file: Path, wrong: Sequence[int]) -> list[str]:
    """Returns a sentence on the lines of a file that are left out; none where there are none."""
    if not wrong:
        return []
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return [f"{file}:{wrong[0]}: this line{more} is not as it was recorded, and is left out"]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _seconds(told: object, times: Sequence[float]) -> float:
    """Returns how long a run is: as its facts say, or to its last event."""
    return float(told) if isinstance(told, int | float) else max([0.0, *times])
