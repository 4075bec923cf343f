"""The state of a parameter server: parameters by chunk, their optimisers, and the record of who has sent what."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from sasp.core.chunks import Layout, chunk_elements
from sasp.core.errors import SaspError
from sasp.core.scheme import Scheme, Versions
from sasp.exchange import rules
from sasp.exchange.frames import MAX_JSON_BYTES, Frame, Kind
from sasp.exchange.peers import TYPES, Hello
from sasp.server.late_chunks import LateChunk, LateGradients, SentContents, Together


class Store:
    """The parameters of one job. Worker 0 fills it; ``begin`` is called once the order of layers is known."""

    def __init__(self, workers: int, scheme: Scheme) -> None:
        self._workers = workers
        self._scheme = scheme
        self._hello: Hello | None = None
        self._layers: dict[int, torch.Tensor] = {}
        self._layout: Layout | None = None
        self._versions: Versions | None = None
        self._chunks: list[LateChunk] = []
        self._waiting: list[dict[int, Together]] = []
        self._sent: SentContents | None = None
        self._left: set[int] = set()
        self.sent_layers_to: set[int] = set()
        self.sent_order_to: set[int] = set()

    @property
    def complete(self) -> bool:
        """Whether all of worker 0's parameters are there."""
        return self._hello is not None and len(self._layers) == len(self._hello.layers)

    def accept_hello(self, hello: Hello) -> None:
        """Take over a worker's greeting. Raises SaspError where it trains another model than those before."""
        rules.optimizer_factory(hello.optimizer, hello.options)
        mine = (hello.type, hello.chunk_bytes, hello.layers, hello.optimizer, hello.late)
        known = self._hello
        if known is not None and mine != (
            known.type, known.chunk_bytes, known.layers, known.optimizer, known.late
        ):  # fmt: skip
            raise SaspError(
                "its model, chunks, optimiser or what is done about late gradients are not those of the workers before"
            )
        if known is None or hello.rank == 0:
            self._hello = hello

    def check_length(self, frame: Frame, *, known: bool) -> None:
        """Check a message's length before memory is allocated for it. Raises SaspError."""
        limit = MAX_JSON_BYTES
        if frame.kind in {Kind.LAYER, Kind.PUSH}:
            if not known or self._hello is None:
                raise SaspError("it sent something before it greeted")
            limit = self._length(frame)
            if frame.length != limit:
                raise SaspError(f"it sent {frame.length} bytes where {limit} were due")
        if frame.length > limit:
            raise SaspError(f"it sent a message of {frame.length} bytes")

    def _length(self, frame: Frame) -> int:
        assert self._hello is not None
        each = int(TYPES[self._hello.type].itemsize)
        if frame.kind is Kind.LAYER:
            if frame.chunk >= len(self._hello.layers):
                raise SaspError(f"it sent layer {frame.chunk} of {len(self._hello.layers)}")
            return self._hello.layers[frame.chunk] * each
        if self._layout is None or frame.chunk >= len(self._layout):
            raise SaspError(f"it sent chunk {frame.chunk}, which there is not")
        chunk = self._layout.chunks[frame.chunk]
        return (chunk.stop - chunk.start) * each

    def accept_layer(self, number: int, body: bytearray) -> None:
        """Take over worker 0's parameters of a layer. Raises SaspError where the layer has come before."""
        assert self._hello is not None
        if number in self._layers:
            raise SaspError(f"it sent layer {number} twice")
        self._layers[number] = torch.frombuffer(body, dtype=TYPES[self._hello.type])

    def layers(self) -> Iterator[bytes]:
        """All first parameters, in the model's order."""
        for number in range(len(self._layers)):
            yield _as_bytes(self._layers[number])

    @property
    def layer_count(self) -> int:
        """The number of layers of the model."""
        assert self._hello is not None
        return len(self._hello.layers)

    def begin(self, order: Sequence[int]) -> None:
        """Cut the layers into chunks; ``order``: all layers by number, front first."""
        assert self._hello is not None
        width = TYPES[self._hello.type].itemsize
        sizes = [self._hello.layers[number] for number in order]
        whole = self._scheme.sending != "sasp"
        self._layout = Layout(sizes, chunk_elements(sizes, self._hello.chunk_bytes, width, whole_layers=whole))
        self._versions = Versions(self._workers, len(self._layout), self._scheme)
        for rank in self._left:
            self._versions.leave(rank)
        make = rules.optimizer_factory(self._hello.optimizer, self._hello.options)
        for chunk in self._layout.chunks:
            flat = self._layers[order[chunk.layer]][chunk.start : chunk.stop]
            self._chunks.append(LateChunk(flat, make, self._hello.late))
        self._waiting = [{} for _ in self._chunks]
        if self._hello.late.corrects:
            self._sent = SentContents()

    def push(self, rank: int, frame: Frame, body: bytearray) -> list[tuple[int, int]]:
        """Add a worker's gradients of a chunk, and step if it is time; return (worker, iteration) of the answers due.

        Raises SaspError.
        """
        assert self._versions is not None
        assert self._hello is not None
        number, rate = frame.chunk, frame.value
        if not math.isfinite(rate):
            raise SaspError(f"it sent chunk {number} with a learning rate of {rate}")
        if frame.late > (most := self._scheme.lead):
            # What was sent is kept for so long as it may be used.
            raise SaspError(f"its gradients of chunk {number} lack {frame.late} iterations; at most {most} are allowed")
        due = self._versions.push(rank, number, frame.iteration)
        then = None if self._sent is None else self._sent.used(rank, number, frame.iteration - 1 - frame.late)
        late = LateGradients(torch.frombuffer(body, dtype=TYPES[self._hello.type]), then)
        if not self._scheme.together:
            self._chunks[number].step([late], rate, self._workers)
            return due
        waiting = self._waiting[number].setdefault(frame.iteration, Together())
        waiting.add(late, rate, keep_apart=self._sent is not None)
        self._step_together(number)
        return due

    def leave(self, rank: int) -> list[tuple[int, int, int]]:
        """Remove a worker; return (chunk, worker, iteration) of the answers that are due without it.

        Raises SaspError where nobody can train without what it has not sent.
        """
        if rank == 0 and not self.complete:
            raise SaspError("it was done before it had sent the parameters that all begin with")
        self._left.add(rank)
        if self._versions is None:
            return []
        due = self._versions.leave(rank)
        if self._sent is not None:
            self._sent.forget(rank)
        for number in range(len(self._waiting)):
            self._step_together(number)
        return due

    def iterations(self, rank: int) -> int:
        """Return the number of iterations of which a worker has sent all gradients."""
        return 0 if self._versions is None else self._versions.clock(rank)

    def _step_together(self, number: int) -> None:
        """One step for all gradients of an iteration, once everybody who is still there has sent theirs; oldest first.

        Their mean, of however many they are: the learning rate was chosen for a mean, not for a part of one. A worker
        that has left is in the means of the iterations that it took part in.
        """
        assert self._versions is not None
        waiting = self._waiting[number]
        for iteration in sorted(known for known in waiting if known <= self._versions.least(number)):
            together = waiting.pop(iteration)
            self._chunks[number].step(together.gradients, together.rate, together.workers)

    def contents(self, number: int, rank: int, iteration: int) -> bytes:
        """A chunk's parameters as they are now, a copy, to be sent to a worker as those after ``iteration``."""
        if self._sent is not None:
            self._sent.note(rank, number, iteration, self._chunks[number].copy())
        return _as_bytes(self._chunks[number].parameter)


def _as_bytes(flat: torch.Tensor) -> bytes:
    return bytes(flat.detach().contiguous().view(torch.uint8).numpy())
