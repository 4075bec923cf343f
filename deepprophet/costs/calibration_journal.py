"""What a calibration has measured so far, in a file beside its own: whatever ends it, the next one goes on from there.

A line of JSON a measurement, added when it is made; what a sudden end has left of a last line is cut off. The first
line says what the measurements are of: another machine's, version's or option's are not gone on from.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepprophet.costs.measured import Measurement, checked, seconds
from deepprophet.errors import ProphetError

SUFFIX = ".partial"


@dataclass
class JournalContents:
    """Measurements so far. ``alone`` and ``beside`` are by exercise: of whole iterations.

    ``operators`` has those of an exercise only once its whole iterations are there too, for they are measured at one
    time. ``refused`` do not run alone. ``others``: how many cores others used, and for how many seconds.
    """

    operators: dict[str, Measurement] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    alone: dict[str, dict[str, float]] = field(default_factory=dict)
    beside: dict[str, float] = field(default_factory=dict)
    wrapping: list[dict[str, Any]] | None = None
    collective: list[dict[str, Any]] | None = None
    overlap: list[dict[str, Any]] | None = None
    others: list[tuple[float, float]] = field(default_factory=list)

    def others_cores(self) -> float:
        """The mean of the cores that others used, over the time of measuring."""
        wall = sum(length for _, length in self.others)
        return sum(cores * length for cores, length in self.others) / wall if wall else 0.0

    def summary(self) -> str:
        """How much there is, for people."""
        return f"{len(self.operators)} operators, {len(self.alone)} models alone, {len(self.beside)} beside others"


class Journal:
    """The file. Raises OSError where it cannot be written, ProphetError where another calibration writes it."""

    def __init__(self, calibration: Path, about: Mapping[str, Any], *, anew: bool = False) -> None:
        """``about``: all that must be the same for measurements to be gone on from; ``anew``: keep nothing."""
        self.path = calibration.with_name(calibration.name + SUFFIX)
        self.kept = JournalContents()
        self.left_out: str | None = None
        """Why what was there is not gone on from."""
        self._file = self.path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ProphetError(f"another calibration writes {self.path}; let it end, or stop it") from None
        if os.fstat(self._file.fileno()).st_nlink == 0:
            self._file.close()
            raise ProphetError(f"another calibration of {calibration} has ended just now; begin again if need be")
        self._begin(dict(about), anew=anew)

    def add(self, **record: Any) -> None:
        """Note a measurement. Raises ImplausibleError, and notes nothing, where it cannot be true."""
        _merge(self.kept, record)
        self._write(record)

    def close(self) -> None:
        """Keep what is there for the next time."""
        self._file.close()

    def remove(self) -> None:
        """The calibration itself is written: this is no longer needed."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self.close()

    def _begin(self, about: dict[str, Any], *, anew: bool) -> None:
        self._file.seek(0)
        good = 0
        waiting: dict[str, list[dict[str, Any]]] = {}
        for number, line in enumerate(self._file):
            record = _parsed(line)
            if record is None:
                break
            if number == 0:
                self.left_out = "a new one was asked for" if anew else _difference(record.get("of"), about)
                if self.left_out is not None:
                    break
            elif not self._accept(record, waiting):
                break
            good += len(line)
        self._file.truncate(good)
        self._file.seek(0, os.SEEK_END)
        if good == 0:
            self._write({"of": about})

    def _accept(self, record: dict[str, Any], waiting: dict[str, list[dict[str, Any]]]) -> bool:
        """Whether a record that was read is one. Operators of an exercise wait for its whole iterations."""
        try:
            if "exercise" in record:
                _merge(JournalContents(), record)
                waiting.setdefault(record["exercise"], []).append(record)
                return True
            _merge(self.kept, record)
            for operator in waiting.pop(record.get("alone", ""), []):
                _merge(self.kept, operator)
        except (StopIteration, KeyError, TypeError, ValueError):
            return False
        return True

    def _write(self, record: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _difference(before: object, about: Mapping[str, Any]) -> str | None:
    """How what was kept differs from what is measured now; None where it does not."""
    if not isinstance(before, dict):
        return "it does not say what it is of"
    names = [name for name in about if before.get(name) != about[name]]
    return ", ".join(f"{name} was {before.get(name)}, and is {about[name]}" for name in names) or None


def _merge(kept: JournalContents, record: Mapping[str, Any]) -> None:
    """Add a record. Raises ImplausibleError, KeyError, TypeError, ValueError for what is none."""
    kind = next(iter(record))
    _KINDS[kind](kept, record)


def _operator(kept: JournalContents, record: Mapping[str, Any]) -> None:
    near, far, low, high = record["seconds"]
    kept.operators[record["operator"]] = checked(Measurement(near, far, low, high), "an operator")


def _alone(kept: JournalContents, record: Mapping[str, Any]) -> None:
    name, fresh = record["alone"], float(record["fresh"])
    kept.alone[name] = {"seconds": seconds(record["seconds"], f"an iteration of {name}"), "fresh": fresh}


def _beside(kept: JournalContents, record: Mapping[str, Any]) -> None:
    name = record["beside"]
    kept.beside[name] = seconds(record["seconds"], f"an iteration of {name} beside others")


def _wrapping(kept: JournalContents, record: Mapping[str, Any]) -> None:
    for row in record["wrapping"]:
        seconds(row["whole"], f"an iteration of {row['name']}")
    kept.wrapping = record["wrapping"]


def _collective(kept: JournalContents, record: Mapping[str, Any]) -> None:
    for row in record["collective"]:
        for sample in row["seconds"]:
            seconds(sample, f"an all-reduce of {row['bytes']} bytes")
    kept.collective = record["collective"]


def _overlap(kept: JournalContents, record: Mapping[str, Any]) -> None:
    for row in record["overlap"]:
        for name in ("quiet", "busy", "sending"):
            seconds(row[name], f"{name} iterations of {row['name']}")
    kept.overlap = record["overlap"]


def _others(kept: JournalContents, record: Mapping[str, Any]) -> None:
    kept.others.append((float(record["others"]), float(record["wall"])))


_KINDS: Mapping[str, Callable[[JournalContents, Mapping[str, Any]], None]] = {
    "operator": _operator,
    "refused": lambda kept, record: kept.refused.add(record["refused"]),
    "alone": _alone,
    "beside": _beside,
    "wrapping": _wrapping,
    "collective": _collective,
    "overlap": _overlap,
    "others": _others,
}
