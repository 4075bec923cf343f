"""What is known of a controller while it is watched: pictures, and when to read it again. Pure: time is an argument.

Whoever follows the events connects first, then the controller is read, then events are applied. So events that came
while it was read are applied once more to what was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from controller.cli.top.picture import Picture, Reading, after_job, after_plan, after_reading
from controller.wire import JobEvent, PlanEvent

SECONDS = 5.0
"""Read the state again after so long, because loads and bytes come by no event."""
SOON_SECONDS = 1.0
"""Read it at most so often, whatever happens."""
JOBS_SECONDS = 30.0
"""Read the jobs again after so long, because their measured demand comes by no event."""
Document = dict[str, Any]


class Watch:
    """What is shown, and what to do next. ``reading`` says whether the controller is being read."""

    def __init__(self, now: float) -> None:
        self.picture = Picture()
        self.gone_since: float | None = None
        """When the controller was lost; None: it is there."""
        self.why_gone = ""
        self.is_reading = False
        self._news: list[Document] = []
        self._due = self._jobs_due = now
        self._last = float("-inf")
        self._is_connected = False

    def connected(self, now: float) -> None:
        """The events are followed now: read everything."""
        self._is_connected = True
        self.gone_since = None
        self._due = self._jobs_due = now

    def lost(self, why: str, now: float) -> None:
        """The controller cannot be reached."""
        self._is_connected = False
        if self.gone_since is None:
            self.gone_since = now
        self.why_gone = why

    def told(self, text: str, now: float) -> None:
        """An event has come."""
        document: Document = json.loads(text)
        if self.is_reading:
            self._news.append(document)
        self._apply(document, now)

    def wants(self, now: float) -> tuple[bool, bool]:
        """Returns whether to read the controller now, and whether its jobs, too. Whoever asks begins to."""
        if self.is_reading or not self._is_connected or now < max(self._due, self._last + SOON_SECONDS):
            return False, False
        self.is_reading, self._last = True, now
        with_jobs = now >= self._jobs_due
        self._due = now + SECONDS
        if with_jobs:
            self._jobs_due = now + JOBS_SECONDS
        self._news = []
        return True, with_jobs

    def was_read(self, reading: Reading | None, now: float) -> None:
        """The controller was read; None: in vain."""
        self.is_reading = False
        if reading is None:
            self._jobs_due = now
        else:
            self.picture = after_reading(self.picture, reading, now)
            for document in self._news:
                self._apply(document, now)
        self._news = []

    def _apply(self, document: Document, now: float) -> None:
        apply = _APPLY.get(document["event"])
        if apply is not None:
            self.picture = apply(self.picture, document["data"], now)
        if document["event"] != "job":
            self._due = now
        if document["event"] == "gap" or self._is_new(document):
            self._due = self._jobs_due = now

    def _is_new(self, document: Document) -> bool:
        """Returns whether an event is about a job that the picture does not have."""
        data = document["data"]
        return document["event"] == "job" and data["state"] != "removed" and data["id"] not in self.picture.jobs


_APPLY: dict[str, Callable[[Picture, Document, float], Picture]] = {
    "job": lambda picture, data, _now: after_job(picture, JobEvent.model_validate(data)),
    "plan": lambda picture, data, now: after_plan(picture, PlanEvent.model_validate(data), now),
}
