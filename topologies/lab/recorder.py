"""Records what happens in an arm: the events of its controller, one JSON document a line, in ``events.jsonl``."""

from __future__ import annotations

import json
import threading
import time
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

    ``follow`` yields the events after an id until the stream ends, or raises ControllerSilentError. The times in the
    file are in seconds since ``zero``, which is set before ``stop``: the start of the experiment.
    """

    def __init__(self, follow: Callable[[str], Iterator[Sent]], folder: Path) -> None:
        self.folder = folder
        self._follow = follow
        self._file = folder / EVENTS
        self._part = folder / f"{EVENTS}.part"
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self.zero = time.time()

    def start(self) -> None:
        """Begin to record. The controller may start later."""
        self._thread.start()

    def stop(self) -> None:
        """Write the file. Call it when the controller has ended, which ends the stream. Raises OSError."""
        self._is_over.set()
        self._thread.join(_STOP_SECONDS)
        with self._part.open() as lines, self._file.open("w") as file:
            file.writelines(relative(line, self.zero) for line in lines)
        self._part.unlink()

    def _run(self) -> None:
        last = ALL_KEPT
        with self._part.open("w") as part:
            while not self._is_over.is_set():
                try:
                    for sent in self._follow(last):
                        last = sent.last
                        if sent.data is not None:
                            part.write(sent.data + "\n")
                except ControllerSilentError:
                    pass  # it has not started yet, or starts again
                part.flush()
                self._is_over.wait(_PAUSE_SECONDS)


def relative(line: str, zero: float) -> str:
    """Returns an event's line with its time in seconds since ``zero``."""
    document = json.loads(line)
    document["time"] = round(document["time"] - zero, 3)
    return json.dumps(document) + "\n"
