"""Two threads that tell of a controller: one follows its events, one reads its state. Neither holds up the other."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass

from controller.cli.client import Client, UnreachableError
from controller.cli.events_command import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, PATH
from controller.cli.output import CommandError
from controller.cli.top.calls import Caller
from controller.cli.top.picture import Reading


@dataclass(frozen=True, slots=True)
class Connected:
    """The events are followed from now on."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event: its JSON."""

    text: str


@dataclass(frozen=True, slots=True)
class Lost:
    """There is no stream now."""

    why: str


@dataclass(frozen=True, slots=True)
class WasRead:
    """The state of the controller; None: it could not be read now."""

    reading: Reading | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The controller cannot be watched."""

    error: CommandError


Message = Connected | Told | Lost | WasRead | Failed


class Follower:
    """Follows the events, and connects again after each end of the stream. What it has to tell goes to ``into``."""

    def __init__(self, client: Client, into: queue.SimpleQueue[Message]) -> None:
        self._client = client
        self._into = into
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Tell nothing more. The thread ends with the program: it may wait for bytes."""
        self._is_over.set()

    def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._is_over.is_set():
            try:
                # A stream begins with a sign of life, and the state is read after it.
                for place, sent in enumerate(self._client.follow(PATH, "")):
                    pause = FIRST_PAUSE_SECONDS
                    if place == 0:
                        self._into.put(Connected())
                    if sent.data is not None:
                        self._into.put(Told(sent.data))
            except UnreachableError as error:
                self._into.put(Lost(str(error)))
            except CommandError as error:
                self._into.put(Failed(error))
                return
            self._is_over.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


class Reader:
    """Reads the state each time that it is asked to. What it has read goes to ``into``."""

    def __init__(self, caller: Caller, into: queue.SimpleQueue[Message]) -> None:
        self._caller = caller
        self._into = into
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="state", daemon=True)

    def start(self) -> None:
        """Wait to be asked."""
        self._thread.start()

    def ask(self, *, with_jobs: bool) -> None:
        """Read the state once."""
        self._asked.put(with_jobs)

    def _run(self) -> None:
        while True:
            with_jobs = self._asked.get()
            try:
                self._into.put(WasRead(self._caller.read(with_jobs=with_jobs)))
            except UnreachableError:
                self._into.put(WasRead(None))
            except CommandError as error:
                self._into.put(Failed(error))
                return
