"""From what a run has written to a recording's folder: neutral, bounded, with its ``about.json``."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.logs.errors import RecordingError
from evaluation.logs.neutral import Neutral
from evaluation.logs.recording import Recording
from evaluation.logs.run import OUTPUTS

ABOUT = "about.json"
LIMIT_BYTES = 100_000
"""A recording is smaller than this."""


def keep(recording: Recording, ran: Path, folder: Path, neutral: Neutral, about: Mapping[str, Any]) -> None:
    """Replace a recording's folder by what a run in ``ran`` has written. Raises RecordingError if it is too large."""
    contents = {
        _name(recording, path.relative_to(ran), neutral): _content(path, neutral) for path in _files(recording, ran)
    }
    missing = set(about["files"]) - set(contents)
    if missing:
        raise RecordingError(f"{recording.name}: the training knows of {', '.join(sorted(missing))}, which is not kept")
    contents[ABOUT] = _about(about)
    size = sum(map(len, contents.values()))
    if size >= LIMIT_BYTES:
        largest = ", ".join(
            f"{name} {len(contents[name])}" for name in sorted(contents, key=lambda n: -len(contents[n]))[:3]
        )
        raise RecordingError(f"{recording.name} has {size} bytes, of at most {LIMIT_BYTES}: {largest}; make it shorter")
    _replace(folder, contents)


def _about(about: Mapping[str, Any]) -> bytes:
    """Returns the JSON text, each point on one line."""
    text = json.dumps(about, indent=1)
    return (re.sub(r"\[\s+([^\s\[\]]+),\s+([^\s\[\]]+)\s+\]", r"[\1, \2]", text) + "\n").encode()


def _files(recording: Recording, ran: Path) -> list[Path]:
    """The output, and what the patterns name, less what is empty."""
    patterns = (*OUTPUTS[recording.streams], *recording.keep)
    found = {path for pattern in patterns for path in ran.glob(pattern) if path.is_file()}
    return sorted(path for path in found if path.stat().st_size)


def _name(recording: Recording, path: Path, neutral: Neutral) -> str:
    name = neutral.text(str(path))
    for pattern, short in recording.rename:
        name = re.sub(pattern, short, name)
    return name


def _content(path: Path, neutral: Neutral) -> bytes:
    content = path.read_bytes()
    try:
        return neutral.text(content.decode()).encode()
    except UnicodeDecodeError:
        if leaks := neutral.leaks(content):
            raise RecordingError(f"{path.name} is no text and has {', '.join(leaks)} of this machine") from None
        return content


def _replace(folder: Path, contents: Mapping[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
