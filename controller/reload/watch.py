"""Notices that the settings file, or a file that it names, has changed."""

from __future__ import annotations

import logging
from collections.abc import Callable

import eventlet

from controller.config.current import CurrentSettings
from controller.reload.reloader import Reloader
from controller.reload.stamps import Stamps, stamps_of

LOG = logging.getLogger("trainyard.reload")
LOOK_SECONDS = 2.0


class FileWatch:
    """Looks at the files every ``seconds``, and logs a change once. Where the settings say ``reload: automatic``, it
    also calls ``reload``.

    A change counts when two looks in a row find it the same, so that a file that is being written is left alone.
    """

    def __init__(
        self, reloader: Reloader, current: CurrentSettings, reload: Callable[[], None], seconds: float = LOOK_SECONDS
    ) -> None:
        self._reloader = reloader
        self._current = current
        self._reload = reload
        self._seconds = seconds
        self._seen: Stamps = {}
        self._said: Stamps = {}

    def start(self) -> None:
        """Begin."""
        eventlet.spawn(self._run)

    def look(self) -> None:
        """Look once."""
        read = self._reloader.stamps
        seen, self._seen = self._seen, stamps_of(read)
        if self._seen in (read, self._said) or self._seen != seen:
            return
        self._said = self._seen
        if self._current.config.reload == "automatic":
            self._reload()
        else:
            LOG.warning(
                "the settings have changed on the disk and are not in force: %s; trainyard reload applies it",
                ", ".join(map(str, self._reloader.news())),
            )

    def _run(self) -> None:
        while True:
            eventlet.sleep(self._seconds)
            try:
                self.look()
            except Exception:  # whatever it is, the next look comes
                LOG.exception("the changed settings could not be put in force")
