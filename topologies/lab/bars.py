"""Progress bars of a lab, on stderr."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from topologies.lab.results import LabEvent


class Bars:
    """A bar for each step, on stderr; a step is over when the next begins."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bars = Progress(*columns, console=console)
        self._step: tuple[str, str, str] | None = None
        self._task: Any = None

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._bars.stop()

    def show(self, event: LabEvent) -> None:
        """Take one event."""
        step = (event.phase, event.experiment, event.policy)
        if step != self._step:
            if self._task is not None:
                self._bars.stop_task(self._task)
            self._step, self._task = step, self._bars.add_task(event.text, total=event.total or None)
        self._bars.update(self._task, completed=event.done)
