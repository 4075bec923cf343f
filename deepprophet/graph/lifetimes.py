"""How long the memory of each tensor of a traced iteration is held. Needs PyTorch.

Storages are watched by weak references, as ``torch.multiprocessing`` watches them (``StorageWeakRef``): they do not
keep one alive, and its address does not come again while one is watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from deepprophet.graph.heap import Allocation


class Lifetimes:
    """Which operator took memory, and before which it was given back."""

    def __init__(self) -> None:
        """Nothing was taken yet."""
        self.held: list[Allocation] = []
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self._dead: list[StorageWeakRef] = []

    def look(self, place: int) -> None:
        """Before the operator at a place: what is gone by now."""
        gone = [address for address, (watched, _) in self._alive.items() if watched.expired()]
        for address in gone:
            watched, number = self._alive.pop(address)
            # Kept, so that the address is not another storage's: operators are known by it.
            self._dead.append(watched)
            self.held[number] = replace(self.held[number], died=place)

    def note(self, place: int, read: Sequence[int], results: Sequence[torch.Tensor]) -> None:
        """The operator at a place has read storages, by address, and given results, some of them in new memory."""
        for tensor in results:
            storage = tensor.untyped_storage()
            address = storage._cdata
            if address not in self._alive and address not in read:
                self._alive[address] = StorageWeakRef(storage), len(self.held)
                self.held.append(Allocation(storage.nbytes(), place, None))
