"""Progress bars of a sweep, on stderr, where that is a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

MAX_BARS = 12
"""With more simulations than this, a single bar shows all of them."""


class Bars:
    """A bar for each simulation, or one for all."""

    def __init__(self, names: Sequence[str]) -> None:
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        self._bars = Progress(*columns, console=console, disable=not console.is_terminal)
        self._single = len(names) > MAX_BARS
        self._bar_of: list[TaskID] = []
        if self._single:
            self._bar_of.append(self._bars.add_task(f"{len(names)} simulations", total=float(len(names))))
        else:
            self._bar_of += [self._bars.add_task(name, total=1.0) for name in names]

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._bars.stop()

    def show(self, shares: Sequence[float]) -> None:
        """Take the share done of each simulation."""
        if self._single:
            self._bars.update(self._bar_of[0], completed=sum(shares))
            return
        for bar, share in zip(self._bar_of, shares, strict=True):
            self._bars.update(bar, completed=share)
            if share >= 1:
                self._bars.stop_task(bar)
