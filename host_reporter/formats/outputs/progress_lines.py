"""The lines of a progress file, which a job writes for the agent: JSON objects with keys of our own. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from host_reporter.formats.events import (
    MAX_ITERATION,
    MAX_METRIC,
    MAX_RUNGS,
    Diverged,
    Ended,
    Event,
    Point,
    Staged,
    Targeted,
)
from host_reporter.formats.numbers import finite, moment, number
from host_reporter.formats.outputs.tally import Tally

RECORD_KEYS: Mapping[str, str] = {
    "iteration": "How many iterations are done. Such a line is a point of progress.",
    "metric": "The value of the metric, beside iteration. "
    "A value that is no finite number says that the job has diverged.",
    "loss": "The loss, beside iteration. It is the metric of a line without the key metric.",
    "time": "When, beside iteration: seconds since the Unix epoch, or a date as in ISO 8601. "
    "Without it the time at which the agent reads the line counts.",
    "stage": "The stage of the study that the job is in from now on, in a line without iteration; null: in none.",
    "until": "The iteration at which the stage ends, beside stage.",
    "rungs_left": "How many rungs of the study follow the stage, beside stage; 0: it is the last.",
    "target": "The value of the metric that the user calls done, in a line without iteration; null: none. "
    "The target in the spec of the job file counts before it.",
    "diverged": "true: the metric or the loss of the run is no finite number. It may stand beside iteration.",
    "ended": "true: the job has ended.",
}
"""Names the keys that a JSON line may have, with their meaning."""

PROGRESS_KEYS = frozenset(RECORD_KEYS)

_STAGE = re.compile(r"[A-Za-z0-9._-]{1,62}")


def progress_event(line: str) -> Event | None:
    """Returns the event of a line of a progress file: an object with some of RECORD_KEYS; None where it is none.

    ``{"iteration": .., "metric": .., "time": .., "diverged": ..}``, ``{"stage": .., "until": .., "rungs_left": ..}``,
    ``{"target": ..}``, ``{"diverged": true}`` or ``{"ended": true}``.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    if record.get("ended") is True:
        return Ended()
    return _measurement(record) if "iteration" in record else _declaration(record)


class ProgressLines:
    """Reads a progress file. Its events are reported as they are."""

    preset: str | None = None
    is_guess = False

    def __init__(self) -> None:
        self.tally = Tally()

    def look(self, line: str) -> tuple[Event | None, str]:
        """Returns the event of a line."""
        return progress_event(line), line

    def accept(self, sight: tuple[Event | None, str]) -> list[Event]:
        """Returns the events of a line."""
        event, line = sight
        if event is None:
            self.tally.missed(line)
            return []
        self.tally.understood()
        return self.tally.count([event])

    def check_dates(self, _last_lines: Sequence[str], _modified: float | None) -> None:
        """Its records have no dates in front."""

    def settle(self) -> list[Event]:
        """No line waits for others."""
        return []

    def begin_file(self) -> None:
        """Each line stands for itself."""

    def problem(self) -> str | None:
        """Nothing is to be said of what was understood."""
        return None

    def ends(self, line: str) -> bool | None:
        """Returns whether a line ends the run; None: it says nothing."""
        event = progress_event(line)
        return isinstance(event, Ended) if event is not None else None


def _point(iteration: object, metric: object, time: object) -> Point | None:
    done = finite(iteration)
    if done is None or not 0 <= done <= MAX_ITERATION:
        return None
    measured = finite(metric)
    if measured is not None and abs(measured) > MAX_METRIC:
        measured = None
    return Point(done, measured, moment(time))


def _staged(stage: object, until: object, rungs_left: object) -> Staged | None:
    end, rungs = finite(until), finite(rungs_left)
    if stage is None:
        return Staged(None)
    if not isinstance(stage, str) or not _STAGE.fullmatch(stage):
        return None
    return Staged(
        stage,
        end if end is not None and 0 < end <= MAX_ITERATION else None,
        int(rungs) if rungs is not None and 0 <= rungs <= MAX_RUNGS and rungs.is_integer() else None,
    )


def _measurement(record: Mapping[str, object]) -> Point | None:
    metric = record.get("metric", record.get("loss"))
    point = _point(record["iteration"], metric, record.get("time"))
    has_diverged = record.get("diverged") is True or _is_not_finite(metric)
    return replace(point, diverged=True) if point is not None and has_diverged else point


def _declaration(record: Mapping[str, object]) -> Staged | Targeted | Diverged | None:
    if "stage" in record:
        return _staged(record["stage"], record.get("until"), record.get("rungs_left"))
    if "target" in record:
        return _targeted(record["target"])
    return Diverged() if record.get("diverged") is True else None


def _targeted(target: object) -> Targeted | None:
    if target is None:
        return Targeted(None)
    value = finite(target)
    return Targeted(value) if value is not None and abs(value) <= MAX_METRIC else None


def _is_not_finite(value: object) -> bool:
    """Returns whether a value is a number, or the text of one, that is not finite."""
    found = number(value)
    return found is not None and not math.isfinite(found)
