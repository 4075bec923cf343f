"""Puts a changed settings file in force, as a whole or not at all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import eventlet.semaphore
import eventlet.tpool

from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.config.file import SettingsFile, read_settings
from controller.documents.mapping_file import ConfigError, Fault
from controller.refusals import Invalid
from controller.reload.difference import Change, changes
from controller.reload.merge import merged
from controller.reload.part import Prepare, Prepared
from controller.reload.stamps import Stamps, files_in, stamps_of

LOG = logging.getLogger("trainyard.reload")
WRITTEN = ("journal", "audit")
"""Files that the controller itself writes; their changes are no news."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reload has changed. ``waiting`` are the settings of the file that need a restart."""

    sha256: str
    loaded_at: float
    changed: tuple[Change, ...]
    waiting: tuple[Change, ...]

    @property
    def sides(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The values of the changed settings before and after, by field."""
        return {each.field: each.before for each in self.changed}, {each.field: each.after for each in self.changed}


class NoFileError(RuntimeError):
    """The controller was started without a settings file."""


class Reloader:
    """Reads the settings file again when it is told to, and has all parts take what has changed.

    ``loaded`` is the file that the controller has started with, and ``current`` holds the settings in force. Each of
    ``parts`` is prepared first, so that one that refuses the settings leaves all as they are. ``last`` is prepared at
    the moment of the change, because what it checks changes all the time; it does not wait. ``between`` calls a
    function while no plan is being made. ``count`` is called with how each try has ended. ``clock`` gives seconds since
    the epoch.
    """

    def __init__(
        self,
        loaded: SettingsFile,
        current: CurrentSettings,
        parts: Sequence[Prepare],
        last: Prepare,
        *,
        between: Callable[[Callable[[], None]], None],
        count: Callable[[Literal["done", "refused"]], object] = lambda _outcome: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = loaded.path
        self.sha256 = loaded.sha256
        """The SHA-256 of the file that is in force, in hexadecimal."""
        self.loaded_at = clock()
        """When that file was read, in seconds since the epoch."""
        self.waiting: tuple[Change, ...] = ()
        """The settings of the file that need a restart."""
        self.failure: str | None = None
        """Why the newest try changed nothing; None: it did what it should."""
        self.stamps = self._stamps(loaded.config)
        """The files as they were when they were read last."""
        self._data = loaded.document.data
        self._current = current
        self._parts = tuple(parts)
        self._last = last
        self._between = between
        self._count = count
        self._clock = clock
        self._turn = eventlet.semaphore.Semaphore()

    def run(self, by: str) -> Outcome:
        """Put the file in force. ``by`` says who or what asked for it.

        Raises ConfigError where the file is wrong, and NoFileError where there is none; then nothing has changed.
        """
        if self.path is None:
            raise NoFileError("the controller runs without a settings file; TRAINYARD_CONFIG names one at its start")
        with self._turn:
            try:
                outcome = self._run(self.path)
            except ConfigError as error:
                self.failure = str(error)
                self._count("refused")
                LOG.error("the settings that were read again are refused, and those of before stay in force: %s", error)
                raise
            self.failure = None
            self._count("done")
            for change in outcome.changed:
                LOG.info("changed by %s: %s", by, change)
            for change in outcome.waiting:
                LOG.warning("it needs a restart: %s", change)
            LOG.info("the settings have been read again for %s; changes: %d", by, len(outcome.changed))
            return outcome

    def news(self) -> tuple[Path, ...]:
        """Returns the files that have changed since they were read."""
        return tuple(file for file, stamp in stamps_of(self.stamps).items() if stamp != self.stamps[file])

    def problems(self) -> tuple[str, ...]:
        """Returns what an operator should know of the settings, a sentence each, its cause behind a colon."""
        said = []
        if self.failure is not None:
            said.append(f"the changed settings are refused, and those of before are in force: {self.failure}")
        elif news := self.news():
            files = ", ".join(map(str, news))
            said.append(
                f"the settings have changed on the disk and are not in force: {files}; trainyard reload applies it"
            )
        if self.waiting:
            said.append(f"settings wait for a restart: {', '.join(change.field for change in self.waiting)}")
        return tuple(said)

    def _run(self, path: Path) -> Outcome:
        # The stamps are taken before the files are read, so that a change meanwhile is news.
        self.stamps = stamps = stamps_of({path: None, **self.stamps})
        read: SettingsFile = eventlet.tpool.execute(read_settings, path)
        assert read.sha256 is not None
        before = self._current.config
        waiting = tuple(change for change in changes(before, read.config) if change.needs_restart)
        data, config = merged(self._data, read, waiting)
        try:
            prepared = self._change(config)
        except Invalid as error:
            raise ConfigError.of([_fault(path, read, *found) for found in error.errors]) from error
        self.stamps = self._stamps(config, stamps)
        self._data, self.waiting, self.sha256, self.loaded_at = data, waiting, read.sha256, self._clock()
        return Outcome(read.sha256, self.loaded_at, _all_changes(before, config, prepared), waiting)

    def _change(self, config: Config) -> list[Prepared]:
        """Have all parts take the settings. Raises ConfigError and Invalid, and then nothing has changed."""
        prepared = [prepare(config) for prepare in self._parts]

        def change() -> None:
            prepared.append(self._last(config))
            for part in prepared:
                part.apply()
            self._current.put(config)

        self._between(change)
        return prepared

    def _stamps(self, config: Config, known: Stamps | None = None) -> Stamps:
        """Returns the stamps of all files of the settings; those of ``known`` are taken as they are there."""
        files = [*([self.path] if self.path is not None else []), *files_in(config, but=WRITTEN)]
        known = known or {}
        return {file: known.get(file, stamp) for file, stamp in stamps_of(files).items()}


def _all_changes(before: Config, after: Config, prepared: Sequence[Prepared]) -> tuple[Change, ...]:
    return (*changes(before, after), *(change for part in prepared for change in part.changes))


def _fault(path: Path, read: SettingsFile, field: str, problem: str) -> Fault:
    return Fault(str(path), read.document.line(tuple(field.split("."))), field, problem)
