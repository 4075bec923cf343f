"""Lines that are in a file later than they were written: standard output goes to a file in blocks. Pure.

Hugging Face's Trainer counts steps in a bar on standard error, which is written at once, and its lines with metrics say
which share of the epochs was done: ``'epoch': 0.25``. The share gives the step, with the iterations of one epoch. These
are in no line. But the bar is drawn anew behind each line, and a line is never of a later step than that bar's: with
``done`` steps there, an epoch has at most done / epoch iterations, and just so many where the line came in time. So the
least such number is that of the epoch, as soon as one line came in time, or was the last one of its block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from host_reporter.formats.events import Point

MAX_HELD = 1_000
"""Hold at most so many lines of one block."""

_DIGITS = 0.0005
"""A share of four digits is off by at most this part of it."""

LEAST_DECIMALS, MAX_DECIMALS = 2, 9
"""Older versions round shares to two decimals, others do not round them."""


class _Line(NamedTuple):
    epoch: float
    metric: float | None
    time: float | None


class LateLines:
    """The lines of one run that may be late. They are held until the next step comes, which is behind all of a block.

    ``is_full``: no more lines can be held.
    """

    def __init__(self) -> None:
        self._held: list[_Line] = []
        self._decimals = LEAST_DECIMALS
        self._most = math.inf
        self._per_epoch = math.inf

    @property
    def is_full(self) -> bool:
        """Whether what is held must be released."""
        return len(self._held) >= MAX_HELD

    def hold(self, epoch: float, metric: float | None, time: float | None) -> None:
        """Keep a line with this share of the epochs. ``metric`` is its value of the run's metric, if it has any."""
        self._decimals = max(self._decimals, _decimals(epoch))
        self._held.append(_Line(epoch, metric, time))

    def forget_metrics(self) -> None:
        """The values that are held are none of the run's metric any more."""
        self._held = [line._replace(metric=None) for line in self._held]

    def release(self, done: float) -> list[Point]:
        """Returns the points of the lines that are held, when ``done`` iterations are done."""
        held, self._held = self._held, []
        for line in held:
            self._bound(line.epoch, done)
        last = max((line.epoch for line in held), default=0.0)
        return [
            Point(self._place(line.epoch, done, is_last=line.epoch == last), line.metric, line.time)
            for line in held
            if line.metric is not None
        ]

    def _bound(self, epoch: float, done: float) -> None:
        """Learn from a line. The later one that may have come in time, the more exactly it tells an epoch's length."""
        slip = self._slip(epoch)
        if epoch > slip:
            self._most = min(self._most, done / (epoch - slip))
            if done / (epoch + slip) <= self._most:
                self._per_epoch = done / epoch

    def _place(self, epoch: float, done: float, *, is_last: bool) -> float:
        """Returns the iteration of a line. The last one of a block has come in time, if that can be."""
        if math.isinf(self._per_epoch) or (is_last and (epoch + self._slip(epoch)) * self._most >= done):
            return done
        return min(float(round(epoch * self._per_epoch)), done)

    def _slip(self, epoch: float) -> float:
        """Returns by how much a share may be off, because it was rounded."""
        return float(max(0.5 * 10.0**-self._decimals, _DIGITS * epoch))


def _decimals(value: float) -> int:
    """Returns how many decimals a number was written with, up to MAX_DECIMALS."""
    return len(f"{value:.{MAX_DECIMALS}f}".rstrip("0").partition(".")[2])
