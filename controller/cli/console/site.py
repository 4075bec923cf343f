"""All that a browser can read of recorded runs, by path: the console's files, and the recordings in parts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import parse_qs, unquote, urlsplit

from controller.cli.console.recordings import Recording
from controller.console import PAGE
from controller.console.static import StaticFile

_LIVE, _RECORDED = b'data-source="live"', b'data-source="recorded"'
_JSON, _LINES = "application/json", "application/jsonl"
_OF_RECORDING = re.compile(r"/recordings/([0-9]{1,3})/(facts|explanation|part|state)(?:/([0-9]{1,9}))?")


class Site:
    """What is answered at each path. ``files`` are the console's; its page is told that it shows recordings."""

    def __init__(self, files: Mapping[str, StaticFile], recordings: Sequence[Recording]) -> None:
        page = files[PAGE]
        self._recordings = recordings
        self._files = {f"/console/{name}": file for name, file in files.items()}
        self._files["/"] = StaticFile(page.content.replace(_LIVE, _RECORDED, 1), page.media_type)
        listed = json.dumps({"recordings": list(map(_listed, recordings))}).encode()
        self._files["/recordings"] = StaticFile(listed, _JSON)

    def find(self, target: str) -> StaticFile | None:
        """Returns what is answered to a request for a path with its query; None where there is nothing."""
        address = urlsplit(target)
        path = unquote(address.path)
        if (file := self._files.get(path)) is not None:
            return file
        found = _OF_RECORDING.fullmatch(path)
        if found is None or int(found[1]) >= len(self._recordings):
            return None
        number = None if found[3] is None else int(found[3])
        return _part(self._recordings[int(found[1])], found[2], number, parse_qs(address.query))


def _part(recording: Recording, what: str, number: int | None, query: Mapping[str, Sequence[str]]) -> StaticFile | None:
    """Returns a part of a recording. It is read from the disk at each request, so the server keeps none of it."""
    if number is not None and number < len(recording.events.parts):
        if what == "part":
            return StaticFile(recording.events.part(number), _LINES)
        if what == "state":
            return StaticFile(recording.events.state(number), _JSON)
    if what == "facts" and number is None and recording.facts is not None:
        return StaticFile(recording.facts.read_bytes(), _JSON)
    if what == "explanation" and number is None and recording.explanations is not None:
        return _explanation(recording.explanations.last, query)
    return None


def _explanation(last: Callable[[str, float], bytes], query: Mapping[str, Sequence[str]]) -> StaticFile | None:
    try:
        (job,), (until,) = query["job"], query["until"]
        return StaticFile(last(job, float(until)), _JSON)
    except (KeyError, ValueError):
        return None


def _listed(recording: Recording) -> dict[str, object]:
    return {
        "name": recording.name,
        "title": recording.title,
        "policy": recording.policy,
        "seconds": recording.seconds,
        "events": recording.events.count,
        "parts": recording.events.moments,
        "has_facts": recording.facts is not None,
        "has_explanations": recording.explanations is not None,
    }
