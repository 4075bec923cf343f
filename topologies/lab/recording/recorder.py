"""Records an arm: the events of its controller, and what a replay shows beside them."""

from __future__ import annotations

import time
from pathlib import Path

from topologies.lab.controller_process import ControllerProcess
from topologies.lab.recording.events import EventRecorder
from topologies.lab.recording.facts import FactsRecorder


class ArmRecorder:
    """Records from ``start`` to ``stop``, into ``folder``. ``title`` names the arm.

    ``zero`` is the start of the experiment, in seconds since the epoch, from which all times in the files count. Who
    starts the experiment sets it.
    """

    def __init__(self, controller: ControllerProcess, folder: Path, title: str) -> None:
        self.folder = folder
        self.zero = time.time()
        self._facts = FactsRecorder(controller.reader(), folder, title)
        self._events = EventRecorder(controller.events, folder, self._facts.note)

    def start(self) -> None:
        """Begin to record. The controller may start later."""
        self._facts.start()
        self._events.start()

    def ask_last(self) -> None:
        """Ask what the controller knows at the end. Call it right before it is stopped."""
        self._facts.ask_last(self.zero)

    def stop(self) -> None:
        """Write the files. Call it when the controller has ended. Raises OSError."""
        self._events.stop(self.zero)
        self._facts.stop(self.zero)
