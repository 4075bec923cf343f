"""Records how late gradients are in a real job: what its server does in turn, and what its workers compute with.

A recorded job can be trained again in one process: see ``server.play`` and ``events.RecordedLateness``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from evaluation.sasp.emulation.events import Event, Used
from sasp.core.scheme import Scheme
from sasp.exchange.frames import Frame
from sasp.server.store import Store
from sasp.training.layers import Layer
from sasp.training.transport import GradientTransport, Piece

PARTS = "delays"
"""The names of the files that a job's processes have recorded begin with this word."""


class RecordingStore(Store):
    """A server's store that notes the order of what comes and goes; take it in the place of the server's own."""

    def __init__(self, workers: int, scheme: Scheme) -> None:
        super().__init__(workers, scheme)
        self.events: list[Event] = []

    def push(self, rank: int, frame: Frame, body: bytearray) -> list[tuple[int, int]]:
        """Note it, and take it in."""
        self.events.append(Event("push", rank, frame.chunk, frame.iteration, time.perf_counter()))
        return super().push(rank, frame, body)

    def contents(self, number: int, rank: int, iteration: int) -> bytes:
        """Note it, and read the chunk."""
        self.events.append(Event("send", rank, number, iteration, time.perf_counter()))
        return super().contents(number, rank, iteration)


class RecordingTransport:
    """A worker's transport that notes what has come when layers compute; it stands before the real one.

    ``events``: when gradients were handed over, for a job without a server; a layer is a chunk there.
    """

    def __init__(self, worker: int, transport: GradientTransport) -> None:
        self.used: list[Used] = []
        self.events: list[Event] = []
        self._worker = worker
        self._transport = transport
        self._sent: list[int] = []
        self.divisor = transport.divisor
        self.in_flight = transport.in_flight

    def agree_on_order(self, order: Sequence[int]) -> tuple[int, ...]:
        """The real one's."""
        return self._transport.agree_on_order(order)

    def begin(self, layers: Sequence[Layer]) -> None:
        """Count from the first iteration on."""
        self._sent = [0] * len(layers)
        self._transport.begin(layers)

    def send(self, layer: int, flat: torch.Tensor, rate: float) -> None:
        """Note it, and send it."""
        self._sent[layer] += 1
        self.events.append(Event("push", self._worker, layer, self._sent[layer], time.perf_counter()))
        self._transport.send(layer, flat, rate)

    def receive(self, layer: int, at_least: int, until: int) -> tuple[int, list[Piece]]:
        """Note what has come: the layer computes with it in its next iteration."""
        reached, pieces = self._transport.receive(layer, at_least, until)
        if self._sent:
            self.used += [
                Used(self._worker, self._sent[layer] + 1, layer, piece.start, piece.iteration) for piece in pieces
            ]
        return reached, pieces

    def set_leads(self, leads: Sequence[int], since: int) -> None:
        """Of the real one."""
        self._transport.set_leads(leads, since)

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Of the real one."""
        return self._transport.largest(numbers)

    def first_ones(self, numbers: Sequence[int]) -> list[int]:
        """Of the real one."""
        return self._transport.first_ones(numbers)

    def close(self) -> None:
        """Close the real one."""
        self._transport.close()


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

    def write(self, path: Path) -> None:
        """Write it as JSON. Raises OSError."""
        path.write_text(json.dumps(asdict(self)) + "\n")


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
        content = json.loads(path.read_text())
        events = tuple(Event(*event) for event in content.pop("events"))
        used = tuple(Used(*one) for one in content.pop("used"))
        return Recording(**content, events=events, used=used)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: no recording of a job: {error}") from error
