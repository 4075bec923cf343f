"""A worker's end of a parameter-server job: gradients go out by a sender thread, parameters come in by another."""

from __future__ import annotations

import atexit
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence

import torch

from sasp.core.chunks import MIN_CHUNK_BYTES, Layout, chunk_elements
from sasp.core.errors import EndOfStreamError, SaspError
from sasp.core.in_flight import InFlight
from sasp.core.leads import Leads
from sasp.core.order import ChunkQueue
from sasp.exchange.frames import (
    MAX_JSON_BYTES,
    MAX_LATE,
    Frame,
    Kind,
    json_message,
    pack,
    receive,
    send_all,
    small_buffer,
)
from sasp.exchange.peers import read_order
from sasp.training.layers import Layer
from sasp.training.transports.greeting import Greeting, explained, meet, name_of, next_message
from sasp.training.transports.transport import Piece

_CLOSE_SECONDS = 10.0
_LAST_WORD_SECONDS = 1.0
"""The sender waits this long for the receiver to read why the server closed the connection."""


class ServerLink:
    """The transport between one worker and its parameter server; ``workers`` is the number of workers."""

    def __init__(self, address: tuple[str, int], greeting: Greeting, layers: Sequence[Layer]) -> None:
        """Connect, say what the model is, and give all workers the parameters of worker 0. Raises SaspError."""
        self.divisor = 1  # the server knows how many there are
        if greeting.who.chunk_bytes < MIN_CHUNK_BYTES:
            raise SaspError(f"chunks of {greeting.who.chunk_bytes} bytes; they must have at least {MIN_CHUNK_BYTES}")
        if len({layer.dtype for layer in layers}) > 1:
            raise SaspError("the model has parameters of several types; a parameter server needs one type")
        self._greeting = greeting
        self._dtype = layers[0].dtype
        self._where = name_of(address)
        self.in_flight = InFlight()
        self._changed = threading.Condition()
        self._queue = ChunkQueue("priority" if greeting.who.scheme.sending == "sasp" else "fifo")
        self._waiting: dict[tuple[int, int], tuple[torch.Tensor, float, int]] = {}
        self._fresh: dict[int, tuple[int, torch.Tensor]] = {}
        self._iterations: list[int] = []
        self._chunks_at: list[int] = []
        self._used: list[int] = []
        self._layout: Layout | None = None
        self._fault: str | None = None
        self._closing = False
        self._threads: list[threading.Thread] = []
        sizes = [layer.elements for layer in layers]
        hello = greeting.message(str(self._dtype).removeprefix("torch."), sizes)
        self._sock, self.workers = meet(address, hello, greeting.who.patience)
        try:
            self._share(layers)
        except BaseException:
            self._sock.close()
            raise
        # Who forgets to close must not keep the others waiting.
        atexit.register(self._at_exit)

    def agree_on_order(self, order: Sequence[int]) -> tuple[int, ...]:
        """Return the order of the first worker, by rank, that trains at all."""
        self._send(json_message(Kind.ORDER, list(order)))
        body = self._expect(Kind.ORDER)
        with explained(self._where):
            return read_order(body, len(order))

    def begin(self, layers: Sequence[Layer]) -> None:
        """Start the threads."""
        who, sizes = self._greeting.who, [layer.elements for layer in layers]
        whole = who.scheme.sending != "sasp"
        self._layout = Layout(sizes, chunk_elements(sizes, who.chunk_bytes, self._dtype.itemsize, whole_layers=whole))
        self._iterations = [0] * len(layers)
        self._chunks_at = [0] * len(self._layout)
        self._used = [0] * len(self._layout)
        self._leads = Leads(len(layers), who.scheme.lead)
        if self._greeting.who.scheme.sending == "sasp":
            small_buffer(self._sock)
        for body in (self._run_sender, self._run_receiver):
            thread = threading.Thread(target=self._guarded, args=(body,), name=f"sasp-{body.__name__}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def send(self, layer: int, flat: torch.Tensor, rate: float) -> None:
        """Let the layer's chunks wait for their turn."""
        assert self._layout is not None
        now = time.perf_counter()
        with self._changed:
            self._check()
            self._iterations[layer] += 1
            iteration = self._iterations[layer]
            due = self._leads.due(layer, iteration)
            for number in self._layout.of(layer):
                chunk = self._layout.chunks[number]
                late = min(iteration - 1 - self._used[number], MAX_LATE)
                self._waiting[number, iteration] = flat[chunk.start : chunk.stop], rate, late
                self._queue.put(number, iteration, due)
                self.in_flight.sent(chunk.stop - chunk.start, now)
            self._changed.notify_all()

    def set_leads(self, leads: Sequence[int], since: int) -> None:
        """Let the order of sending follow these leads. Raises SaspError before an iteration."""
        if self._layout is None:
            raise SaspError("leads can be set once the first iteration is done, which shows the order of layers")
        with self._changed:
            self._leads.change(leads, since)

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Each worker of a server chooses by itself."""
        return list(numbers)

    def first_ones(self, numbers: Sequence[int]) -> list[int]:
        """Each worker of a server chooses by itself."""
        return list(numbers)

    def receive(self, layer: int, at_least: int, until: int) -> tuple[int, list[Piece]]:
        """Parameters, a chunk a piece."""
        if self._layout is None:
            return 0, []
        numbers = self._layout.of(layer)
        with self._changed:
            self._changed.wait_for(lambda: self._reached(numbers) >= at_least or self._fault is not None)
            if self._reached(numbers) < at_least:
                self._check()
            pieces = []
            for number in numbers:
                if (fresh := self._fresh.pop(number, None)) is not None:
                    self._used[number] = fresh[0]
                    pieces.append(Piece(fresh[0], self._layout.chunks[number].start, fresh[1]))
            return min(self._reached(numbers), until), pieces

    def close(self) -> None:
        """Say that this worker is done, once all is sent, and let the threads go; the others train on without it."""
        self._leave(None)

    def _at_exit(self) -> None:
        """Leave without DONE where an exception ends the script, because then the job has failed."""
        failed = getattr(sys, "last_value", None) is not None
        self._leave("the script has failed" if failed else None)

    def _leave(self, fault: str | None) -> None:
        """Say DONE, unless there is a ``fault``, and let the threads go."""
        atexit.unregister(self._at_exit)
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._fault = self._fault or fault
            self._changed.notify_all()
        if self._fault is None:
            if self._threads:
                self._threads[0].join(_CLOSE_SECONDS)
            else:
                with contextlib.suppress(OSError):
                    send_all(self._sock, json_message(Kind.DONE, None))
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_CLOSE_SECONDS)
        self._sock.close()

    def _reached(self, numbers: range) -> int:
        return min(self._chunks_at[number] for number in numbers)

    def _check(self) -> None:
        if self._fault is not None:
            raise SaspError(f"{self._where}: {self._fault}")
        if self._closing:
            raise SaspError("the model was closed; join again to go on training")

    def _share(self, layers: Sequence[Layer]) -> None:
        """Worker 0 sends its parameters. The others take them over."""
        for number, layer in enumerate(layers):
            if self._greeting.who.rank == 0:
                body = as_bytes(layer.flat_parameters())
                self._send(pack(Frame(Kind.LAYER, len(body), number)), body)
                continue
            frame, data = self._next(layer.elements * self._dtype.itemsize)
            if (frame.kind, frame.chunk) != (Kind.LAYER, number) or len(data) != layer.elements * self._dtype.itemsize:
                raise SaspError(f"{self._where}: sent {frame} where the parameters of layer {layer.name} were due")
            layer.set_parameters(0, torch.frombuffer(data, dtype=self._dtype))

    def _send(self, *parts: bytes | memoryview) -> None:
        try:
            send_all(self._sock, *parts)
        except OSError as error:
            # It may have said why before it hung up; then this raises with that.
            self._next()
            raise SaspError(f"{self._where}: {error}") from error

    def _next(self, longest: int = MAX_JSON_BYTES) -> tuple[Frame, bytearray]:
        try:
            return next_message(self._sock, self._where, longest)
        except (OSError, EndOfStreamError) as error:
            raise SaspError(f"{self._where}: {error}") from error

    def _expect(self, kind: Kind) -> bytearray:
        frame, data = self._next()
        if frame.kind is not kind:
            raise SaspError(f"{self._where}: sent {frame.kind.name} where {kind.name} was due")
        return data

    def _guarded(self, body: Callable[[], None]) -> None:
        try:
            body()
        except Exception as error:
            with self._changed:
                # The first fault is the one to tell; the end after our own good-bye is none.
                if not self._closing:
                    self._fault = self._fault or str(error) or type(error).__name__
                self._changed.notify_all()

    def _run_sender(self) -> None:
        try:
            self._send_by_turn()
        except OSError:
            # The receiver may be about to read why, and the first fault is the one to tell.
            self._threads[1].join(_LAST_WORD_SECONDS)
            raise

    def _send_by_turn(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: len(self._queue) or self._closing or self._fault is not None)
                if self._fault is not None:
                    return
                taken = self._queue.dequeue()
                part, rate, late = self._waiting.pop(taken) if taken is not None else (None, 0.0, 0)
            if taken is None or part is None:
                send_all(self._sock, json_message(Kind.DONE, None))
                return
            body = as_bytes(part)
            send_all(self._sock, pack(Frame(Kind.PUSH, len(body), taken[0], taken[1], rate, late)), body)

    def _run_receiver(self) -> None:
        assert self._layout is not None
        longest = max(chunk.stop - chunk.start for chunk in self._layout.chunks) * self._dtype.itemsize
        while True:
            frame, data = receive(self._sock, longest)
            if frame.kind is Kind.REFUSED:
                raise SaspError(data.decode(errors="replace"))
            chunk = self._layout.chunks[frame.chunk] if frame.chunk < len(self._layout) else None
            if frame.kind is not Kind.FRESH or chunk is None:
                raise SaspError(f"sent {frame} where parameters were due")
            if len(data) != (due := (chunk.stop - chunk.start) * self._dtype.itemsize):
                raise SaspError(f"sent {len(data)} bytes for a chunk of {due}")
            contents = torch.frombuffer(data, dtype=self._dtype)
            with self._changed:
                if not self._chunks_at[frame.chunk] < frame.iteration <= self._iterations[chunk.layer]:
                    raise SaspError(f"sent {frame}, an answer to what was never sent to it")
                answered = frame.iteration - self._chunks_at[frame.chunk]
                self.in_flight.came(answered * (chunk.stop - chunk.start), time.perf_counter())
                self._fresh[frame.chunk] = frame.iteration, contents
                self._chunks_at[frame.chunk] = frame.iteration
                self._changed.notify_all()


def as_bytes(flat: torch.Tensor) -> memoryview:
    """The memory of a contiguous tensor on the processor, of any type."""
    return memoryview(flat.detach().contiguous().view(torch.uint8).numpy()).cast("B")
