"""How late gradients were in a real job: what its server did in turn, and what its workers computed with.

A recorded job can be trained again in one process: see ``server.play`` and ``events.RecordedLateness``.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from evaluation.sasp.emulation.events import Event, Used

PARTS = "delays"
"""The names of the files that a job's processes have recorded begin with this word."""

COMPRESSED = ".json.xz"
"""The name of a whole job's recording in one file ends with this."""

_DIGITS = 5
"""Decimal digits of rounded times, in seconds: 10 us are less than a thousandth of the shortest iteration."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A job of ``workers`` workers: how it was kept in step, what its server did, and what workers computed with.

    Over all-reduce there is no server: ``scheme`` is empty, and ``events`` say when gradients were handed over.
    """

    workers: int
    scheme: str
    chunk_bytes: int
    events: tuple[Event, ...]
    used: tuple[Used, ...]

    @property
    def middle(self) -> tuple[int, int]:
        """The iterations, from the first to before the last, that stand for a job's: without its begin and its end."""
        last = max((event.iteration for event in self.events), default=0)
        return max(1, last // 4), max(2, last - 2)

    @property
    def iteration_seconds(self) -> float:
        """The mean time of these iterations, over workers; 0 where nothing was recorded."""
        first, last = self.middle
        begins: dict[tuple[int, int], float] = {}
        for event in self.events:
            if event.kind == "push" and event.iteration in (first, last):
                begins.setdefault((event.worker, event.iteration), event.at)
        spans = [begins[worker, last] - begins[worker, first] for worker in range(self.workers) if begins]
        return sum(spans) / len(spans) / (last - first) if spans else 0.0

    def rounded(self) -> Recording:
        """Returns the same recording with rounded times, which take less room in a compressed file."""
        return replace(self, events=tuple(event._replace(at=round(event.at, _DIGITS)) for event in self.events))

    def write(self, path: Path) -> None:
        """Write it as JSON, compressed if ``path`` says so. Raises OSError."""
        written = (json.dumps(asdict(self)) + "\n").encode()
        path.write_bytes(lzma.compress(written) if path.name.endswith(COMPRESSED) else written)


def gathered(folder: Path, name: str) -> Recording:
    """What the processes of one job recorded, each in a file that begins with ``name``. Raises OSError, ValueError."""
    parts = [read(path) for path in sorted(folder.glob(f"{name}-*.json"))]
    if not parts:
        raise ValueError(f"{folder}: no recording of a job")
    return replace(
        parts[0],
        events=tuple(event for part in parts for event in part.events),
        used=tuple(used for part in parts for used in part.used),
    )


def read(path: Path) -> Recording:
    """Read what ``Recording.write`` wrote, or a folder with the parts of one job. Raises OSError, ValueError."""
    if path.is_dir():
        return gathered(path, PARTS)
    try:
        written = path.read_bytes()
        content = json.loads(lzma.decompress(written) if path.name.endswith(COMPRESSED) else written)
        events = tuple(Event(*event) for event in content.pop("events"))
        used = tuple(Used(*one) for one in content.pop("used"))
        return Recording(**content, events=events, used=used)
    except (KeyError, TypeError, AttributeError, lzma.LZMAError) as error:
        raise ValueError(f"{path}: no recording of a job: {error}") from error
