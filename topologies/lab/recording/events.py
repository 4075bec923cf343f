"""Records what happens in an arm: the events of its controller, one JSON document a line, in ``events.jsonl``."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from controller.wire.event_stream import Sent
from topologies.lab.controller_process import ControllerSilentError

EVENTS = "events.jsonl"
ALL_KEPT = "0"
"""As the last id that a client has, this asks for all events that the controller keeps."""
_PAUSE_SECONDS = 0.2
_STOP_SECONDS = 10.0


class EventRecorder:
    """Follows the events in a thread, from ``start`` to ``stop``, over restarts of the controller.

    ``follow`` yields the events after an id until the stream ends, or raises ControllerSilentError. ``tell`` is called
    with each event's JSON as it comes. The times in the file are in seconds since the start of the experiment.
    """

    def __init__(
        self, follow: Callable[[str], Iterator[Sent]], folder: Path, tell: Callable[[str], None] = lambda _event: None
    ) -> None:
        self._follow = follow
        self._tell = tell
        self._file = folder / EVENTS
        self._part = folder / f"{EVENTS}.part"
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        """Begin to record. The controller may start later."""
        self._thread.start()

    def stop(self, zero: float) -> None:
        """Write the file. Call it when the controller has ended, which ends the stream. Raises OSError.

        ``zero``: the start of the experiment, in seconds since the epoch.
        """
        self._is_over.set()
        self._thread.join(_STOP_SECONDS)
        finish(self._part, self._file, zero)

    def _run(self) -> None:
        last = ALL_KEPT
        with self._part.open("w", buffering=1) as part:
            is_over = False
            # Also of a recorder that is stopped at once: what the controller has kept is read.
            while not is_over:
                try:
                    for sent in self._follow(last):
                        last = sent.last
                        if sent.data is not None:
                            part.write(sent.data + "\n")
                            self._tell(sent.data)
                except ControllerSilentError:
                    pass  # it has not started yet, or starts again
                part.flush()
                is_over = self._is_over.wait(_PAUSE_SECONDS)


def finish(part: Path, file: Path, zero: float) -> None:
    """Write the lines of ``part`` to ``file`` with times in seconds since ``zero``, and remove ``part``."""
    with part.open() as lines, file.open("w") as written:
        written.writelines(relative(line, zero) for line in lines)
    part.unlink()


def relative(line: str, zero: float) -> str:
    """Returns a line, a JSON document with a time, with this time in seconds since ``zero``."""
    document = json.loads(line)
    document["time"] = round(document["time"] - zero, 3)
    return json.dumps(document) + "\n"
