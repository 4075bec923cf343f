"""Gradients by all-reduce over Gloo, chunk by chunk, by a thread beside the training.

The thread has two process groups of its own: one for the rounds in which ranks agree on the next chunk (see
``agreement``), one for the chunks. A round goes on while the chunk before is on its way, so the network does not wait
for it; at most ``IN_FLIGHT`` chunks are with Gloo, so a more urgent one waits for no more than these.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from sasp.core.agreement import Agreement
from sasp.core.chunks import Layout
from sasp.core.errors import SaspError
from sasp.training.layers import Layer
from sasp.training.options import AllReduceOptions
from sasp.training.transport import Piece

IN_FLIGHT = 2
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
        self._chunk_bytes = options.chunk_bytes
        # Collectives of one group must be called in one order, and the training may use its own group meanwhile.
        self._rounds = dist.new_group(ranks, backend="gloo", timeout=options.timeout)
        self._chunks = dist.new_group(ranks, backend="gloo", timeout=options.timeout)
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
        self._layout = Layout(sizes, self._chunk_bytes // widest)
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
            self._flat[layer, iteration] = flat
            self._left[layer, iteration] = len(self._layout.of(layer))
            self._changed.notify_all()

    def receive(self, layer: int, at_least: int, until: int) -> tuple[int, list[Piece]]:
        """Averaged gradients, an iteration a piece."""
        if not self._done:
            return 0, []
        with self._changed:
            self._changed.wait_for(lambda: self._done[layer] >= at_least or self._fault is not None)
            if self._done[layer] < at_least:
                self._check()
            reached = min(self._done[layer], until)
            pieces = [(i, self._flat.pop((layer, i))) for i in range(self._taken[layer] + 1, reached + 1)]
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
        for group in (self._rounds, self._chunks):
            if group is not None and dist.is_initialized():
                dist.destroy_process_group(group)
        self._rounds = self._chunks = None

    def _check(self) -> None:
        if self._fault is not None:
            raise SaspError(f"the gradients cannot be exchanged: {self._fault}") from self._fault
        if self._closing:
            raise SaspError("the model was closed; wrap it again to go on training")

    def _run(self) -> None:
        try:
            self._exchange()
        except BaseException as error:
            # The training thread is told when it next asks for something.
            with self._changed:
                self._fault = error
                self._changed.notify_all()

    def _exchange(self) -> None:
        assert self._agreement is not None
        agreement = self._agreement
        flying: deque[tuple[Any, int, int]] = deque()
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: agreement.has_unsent or agreement.has_news or bool(flying) or self._closing
                )
                joins = agreement.has_unsent or agreement.has_news
                ready = agreement.ready
            if not joins:
                if not flying:
                    return
                self._finish(*flying.popleft())
                continue
            if len(flying) >= IN_FLIGHT:
                self._finish(*flying.popleft())
                continue
            counts = torch.tensor(ready)
            dist.all_reduce(counts, dist.ReduceOp.MIN, group=self._rounds)
            with self._changed:
                agreement.learn(counts.tolist())
                taken = agreement.dequeue()
            if taken is not None:
                flying.append(self._begin_chunk(*taken))

    def _begin_chunk(self, iteration: int, number: int) -> tuple[Any, int, int]:
        assert self._layout is not None
        chunk = self._layout.chunks[number]
        with self._changed:
            part = self._flat[chunk.layer, iteration][chunk.start : chunk.stop]
        return dist.all_reduce(part, group=self._chunks, async_op=True), chunk.layer, iteration

    def _finish(self, work: Any, layer: int, iteration: int) -> None:
        work.wait()
        with self._changed:
            self._left[layer, iteration] -= 1
            if not self._left[layer, iteration]:
                del self._left[layer, iteration]
                self._done[layer] = iteration
                self._changed.notify_all()


@contextlib.contextmanager
def _explained(what: str) -> Any:
    """Say in one line what a collective could not do."""
    try:
        yield
    except SaspError:
        raise
    except RuntimeError as error:
        raise SaspError(f"{what}: {error}") from error
