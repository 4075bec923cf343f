"""Gradients by all-reduce over Gloo, chunk by chunk, by a thread beside the training.

The thread has two process groups of its own: one for the rounds in which ranks agree on the next chunks (see
``agreement``), one for the chunks. In a round the first rank gathers what the others have ready and tells them what all
have: 2 (n - 1) messages among n ranks, where a ring takes 2 n (n - 1). These wait behind chunks that are on their way,
so a round takes about as long as a chunk. So each round is for two chunks, or as many small ones as have their size,
all in one collective, and goes on while those of the last two rounds are on their way. A more urgent chunk waits for no
more than these.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from sasp.core.agreement import Agreement
from sasp.core.chunks import Layout
from sasp.core.errors import SaspError
from sasp.core.in_flight import InFlight
from sasp.training.layers import Layer
from sasp.training.options import AllReduceOptions
from sasp.training.transports.fused import Fused, fuse
from sasp.training.transports.transport import Piece

CHUNKS_A_ROUND = 2
ROUNDS_IN_FLIGHT = 2
_CLOSE_SECONDS = 10.0


class AllReduce:
    """The transport among the ranks of an all-reduce. Raises SaspError."""

    def __init__(self, options: AllReduceOptions) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise SaspError("torch.distributed is not initialised; call torch.distributed.init_process_group first")
        options.check()
        ranks = dist.get_process_group_ranks(options.group)
        self.divisor = len(ranks)
        self._first = ranks[0]
        self._is_first = dist.get_rank() == ranks[0]
        self._chunk_bytes = options.chunk_bytes
        self._chunk_elements = 0
        self._flying = 0
        self._choices: Any = None
        self._new_group = partial(dist.new_group, ranks, backend="gloo", timeout=options.timeout)
        # Collectives of one group must be called in one order, and the training may use its own group meanwhile.
        self._rounds = self._new_group()
        self._chunks = self._new_group()
        self.in_flight = InFlight()
        self._changed = threading.Condition()
        self._layout: Layout | None = None
        self._agreement: Agreement | None = None
        self._flat: dict[tuple[int, int], torch.Tensor] = {}
        self._left: dict[tuple[int, int], int] = {}
        self._done: list[int] = []
        self._taken: list[int] = []
        self._fault: BaseException | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        # A thread that is inside a collective when the interpreter ends would take the process down with a fault.
        atexit.register(self.close)

    def share(self, tensors: Sequence[torch.Tensor]) -> None:
        """Give all ranks the first one's. Raises SaspError."""
        with _explained("the ranks cannot begin with the same parameters"):
            for tensor in tensors:
                copy = tensor.detach().cpu().contiguous()
                dist.broadcast(copy, self._first, group=self._chunks)
                with torch.no_grad():
                    tensor.copy_(copy)

    def check_same(self, numbers: Sequence[int], what: str) -> None:
        """Raises SaspError where ranks differ in these numbers."""
        with _explained(f"the ranks cannot compare their {what}"):
            for wanted in (len(numbers), *numbers):
                pair = torch.tensor([wanted, -wanted])
                dist.all_reduce(pair, dist.ReduceOp.MAX, group=self._rounds)
                most, least = int(pair[0]), -int(pair[1])
                if most != least:
                    raise SaspError(f"the ranks differ in their {what}: {least} in one, {most} in another")

    def prepare_choices(self) -> None:
        """Let ranks choose together, by the training thread: the other one may be inside a round meanwhile."""
        self._choices = self._new_group()

    def agree_on_order(self, order: Sequence[int]) -> tuple[int, ...]:
        """Return the first rank's order."""
        tensor = torch.tensor(list(order))
        with _explained("the ranks cannot agree on the order of layers"):
            dist.broadcast(tensor, self._first, group=self._rounds)
        return tuple(tensor.tolist())

    def begin(self, layers: Sequence[Layer]) -> None:
        """Start the thread."""
        widest = max(layer.dtype.itemsize for layer in layers)
        sizes = [layer.elements + len(layer.parameters) for layer in layers]
        self._chunk_elements = self._chunk_bytes // widest
        self._layout = Layout(sizes, self._chunk_elements)
        self._agreement = Agreement(self._layout)
        self._done = [0] * len(layers)
        self._taken = [0] * len(layers)
        self._thread = threading.Thread(target=self._run, name="sasp-sender", daemon=True)
        self._thread.start()

    def send(self, layer: int, flat: torch.Tensor, rate: float) -> None:
        """Let the layer's gradients wait for their turn."""
        del rate  # the optimiser is here
        assert self._agreement is not None
        assert self._layout is not None
        with self._changed:
            self._check()
            iteration = self._agreement.ready_now(layer)
            self.in_flight.sent(self._layout.sizes[layer], time.perf_counter())
            self._flat[layer, iteration] = flat
            self._left[layer, iteration] = len(self._layout.of(layer))
            self._changed.notify_all()

    def set_leads(self, leads: Sequence[int], since: int) -> None:
        """Let the order of sending follow these leads, which all ranks set. Raises SaspError before an iteration."""
        if self._agreement is None:
            raise SaspError("leads can be set once the first iteration is done, which shows the order of layers")
        with self._changed:
            self._agreement.set_leads(leads, since)

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Return the largest of all ranks, number by number."""
        tensor = torch.tensor(list(numbers), dtype=torch.float64)
        with _explained("the ranks cannot agree on which gradients may be late"):
            dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self._choices)
        return [float(number) for number in tensor]

    def first_ones(self, numbers: Sequence[int]) -> list[int]:
        """Return the first rank's."""
        tensor = torch.tensor(list(numbers))
        with _explained("the ranks cannot agree on which gradients may be late"):
            dist.broadcast(tensor, self._first, group=self._choices)
        return [int(number) for number in tensor]

    def receive(self, layer: int, at_least: int, until: int) -> tuple[int, list[Piece]]:
        """Averaged gradients, an iteration a piece."""
        if not self._done:
            return 0, []
        with self._changed:
            self._changed.wait_for(lambda: self._done[layer] >= at_least or self._fault is not None)
            if self._done[layer] < at_least:
                self._check()
            reached = min(self._done[layer], until)
            pieces = [Piece(i, 0, self._flat.pop((layer, i))) for i in range(self._taken[layer] + 1, reached + 1)]
            self._taken[layer] = reached
            return reached, pieces

    def close(self) -> None:
        """End the thread, if it is not held up by a rank that is gone."""
        atexit.unregister(self.close)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)
            if self._thread.is_alive():
                return
        for group in (self._rounds, self._chunks, self._choices):
            if group is not None and dist.is_initialized():
                dist.destroy_process_group(group)
        self._rounds = self._chunks = self._choices = None

    def _check(self) -> None:
        if self._fault is not None:
            raise SaspError(f"the gradients cannot be exchanged: {self._fault}") from self._fault
        if self._closing:
            raise SaspError("the model was closed; wrap it again to go on training")

    def _run(self) -> None:
        try:
            while self._exchange_round():
                pass
        except BaseException as error:
            self._fail(error)

    def _exchange_round(self) -> bool:
        """Agree with the other ranks, and begin the chunks that are next. Returns False where the job is over."""
        agreement, most = self._agreement, CHUNKS_A_ROUND * self._chunk_elements
        assert agreement is not None
        with self._changed:
            self._changed.wait_for(
                lambda: agreement.has_unsent or agreement.has_news_of(self._chunk_elements) or self._closing
            )
            if not (agreement.has_unsent or agreement.has_news_of(self._chunk_elements)):
                self._changed.wait_for(lambda: not self._flying or self._fault is not None)
                return False
            ready = agreement.ready
        minimum = self._minimum(ready)
        with self._changed:
            agreement.learn(minimum)
            taken = agreement.dequeue(most)
        self._begin_chunks(taken)
        with self._changed:
            self._changed.wait_for(lambda: self._flying <= ROUNDS_IN_FLIGHT * most or self._fault is not None)
            return self._fault is None

    def _minimum(self, ready: Sequence[int]) -> list[int]:
        """Return the smallest numbers of all ranks. Waits for all of them."""
        counts = torch.tensor(ready)
        gathered = [torch.empty_like(counts) for _ in range(self.divisor)] if self._is_first else None
        dist.gather(counts, gathered, self._first, group=self._rounds)
        if gathered is not None:
            counts = torch.stack(gathered).amin(0)
        dist.broadcast(counts, self._first, group=self._rounds)
        return [int(count) for count in counts]

    def _begin_chunks(self, taken: Sequence[tuple[int, int]]) -> None:
        assert self._layout is not None
        chunks = [(iteration, self._layout.chunks[number]) for iteration, number in taken]
        with self._changed:
            all_fused = fuse(chunks, lambda layer, iteration: self._flat[layer, iteration])
            self._flying += sum(len(fused.tensor) for fused in all_fused)
        for fused in all_fused:
            work = dist.all_reduce(fused.tensor, group=self._chunks, async_op=True)
            # The thread may be in a round, waiting for a rank that still computes, when these have come.
            work.get_future().add_done_callback(partial(self._finish_chunks, fused))

    def _finish_chunks(self, fused: Fused, future: torch.futures.Future[Any]) -> None:
        try:
            future.value()
        except RuntimeError as error:
            self._fail(error)
            return
        fused.unpack()
        with self._changed:
            self._flying -= len(fused.tensor)
            for iteration, chunk in fused.chunks:
                self._left[chunk.layer, iteration] -= 1
                if not self._left[chunk.layer, iteration]:
                    self._note_come(chunk.layer, iteration)
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        """The training thread is told when it next asks for something."""
        with self._changed:
            self._fault = self._fault or error
            self._changed.notify_all()

    def _note_come(self, layer: int, iteration: int) -> None:
        """All chunks of a layer's iteration are there. Gloo's threads may be done with a later iteration first."""
        assert self._layout is not None
        del self._left[layer, iteration]
        self.in_flight.came(self._layout.sizes[layer], time.perf_counter())
        while (following := (layer, self._done[layer] + 1)) in self._flat and following not in self._left:
            self._done[layer] += 1


@contextlib.contextmanager
def _explained(what: str) -> Any:
    """Say in one line what a collective could not do."""
    try:
        yield
    except SaspError:
        raise
    except RuntimeError as error:
        raise SaspError(f"{what}: {error}") from error
