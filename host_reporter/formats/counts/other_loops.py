"""Lines of other loops than the training's, such as a bar ``0/4`` in a run of 500: their length tells them. Pure."""

from __future__ import annotations

from host_reporter.formats.reading import Reading

MAX_LENGTHS = 100
"""Remember at most so many lengths of other loops."""


class OtherLoops:
    """The lengths of other loops so far. A loop is another one if its length is not the run's, and it begins lower."""

    def __init__(self) -> None:
        self._lengths: set[float] = set()

    def has(self, reading: Reading, length: float | None, highest: float | None) -> bool:
        """Returns whether a line counts another loop. ``length`` is the run's, ``highest`` its highest iteration."""
        done = reading.iteration if reading.iteration is not None else reading.step
        if done is None or length is None or reading.total in (None, length):
            return False
        if highest is not None and done < highest and len(self._lengths) < MAX_LENGTHS:
            self._lengths.add(reading.total or 0.0)
        return reading.total in self._lengths
