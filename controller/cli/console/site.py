"""All that a browser can read of recorded runs, by path: the console's files, and the recordings. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from controller.cli.console.recordings import Recording
from controller.console import PAGE
from controller.console.static import StaticFile

_LIVE, _RECORDED = b'data-source="live"', b'data-source="recorded"'
_JSON = "application/json"
_TYPES = {".json": _JSON, ".jsonl": "application/jsonl"}


def site(files: Mapping[str, StaticFile], recordings: Sequence[Recording]) -> dict[str, StaticFile]:
    """Returns what is answered at each path. ``files`` are the console's; its page is told that it shows recordings."""
    page = files[PAGE]
    found = {f"/console/{name}": file for name, file in files.items()}
    found["/"] = StaticFile(page.content.replace(_LIVE, _RECORDED, 1), page.media_type)
    found["/recordings"] = StaticFile(json.dumps({"recordings": list(map(_listed, recordings))}).encode(), _JSON)
    for number, recording in enumerate(recordings):
        for name, content in recording.files.items():
            found[f"/recordings/{number}/{name}"] = StaticFile(content, _TYPES[PurePath(name).suffix])
    return found


def _listed(recording: Recording) -> dict[str, object]:
    return {
        "name": recording.name,
        "title": recording.title,
        "policy": recording.policy,
        "seconds": recording.seconds,
        "events": recording.events,
        "files": list(recording.files),
    }
