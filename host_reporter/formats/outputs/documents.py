"""A JSON document that its writer replaces by a longer one: its records in, events out. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from host_reporter.formats.events import Event
from host_reporter.formats.matching import Matcher, flat
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.outputs.records import Records
from host_reporter.formats.preset import Fields, Kind


class DocumentReader(Records):
    """Reads the records that came since the last time."""

    def __init__(
        self, matchers: Mapping[str, Matcher], declared: Declared | None = None, fields: Fields | None = None
    ) -> None:
        super().__init__(Kind.DOCUMENT, matchers, declared, fields)
        self._done = 0

    def feed(self, text: str) -> list[Event]:
        """Returns the events of the new records. Raises ValueError where the text is no whole JSON object."""
        try:
            document = json.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if not isinstance(document, dict):
            raise ValueError("it is no JSON object")
        records = self._records(document)
        if len(records) < self._done:
            self.begin_file()
        events = [event for record in records[self._done :] for event in self.take(self.read(record), str(record))]
        self._done = len(records)
        return events

    def begin_file(self) -> None:
        """The next document is another one."""
        self._done = 0
        self.forget()

    def _records(self, document: dict[str, Any]) -> list[dict[str, object]]:
        """Returns the records of the document's list, each with the document's own fields that the preset shares."""
        for name, entries in document.items():
            if isinstance(entries, list) and entries and isinstance(entries[0], dict):
                records = [{name: True} | flat(entry) for entry in entries if isinstance(entry, dict)]
                self.recognise(records[0])
                shared = {key: document[key] for key in self.shared if key in document}
                return [shared | record for record in records]
        return []
