"""How long the memory of each tensor of a traced iteration is held. Needs PyTorch.

Storages are watched by weak references of two kinds. Python's, to the object that a storage has in Python and that
lives as long as the storage does, says at once when one is gone: who asks all of them before each operator waits for
minutes where a model has many. That of ``torch.multiprocessing`` (``StorageWeakRef``) keeps its address from coming
again. Neither keeps a storage alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from deepprophet.graph.memory.heap import Allocation


class _Watched(weakref.ref[torch.UntypedStorage]):
    """A storage's address, and which allocation it is."""

    __slots__ = ("address", "number")
    address: int
    number: int


class Lifetimes:
    """Which operator took memory, and before which it was given back."""

    def __init__(self) -> None:
        """Nothing was taken yet."""
        self._sizes: list[int] = []
        self._born: list[int] = []
        self._died: list[int | None] = []
        self._alive: dict[int, _Watched] = {}
        self._gone: list[_Watched] = []
        self._addresses: list[StorageWeakRef] = []
        """Kept of all, so that no address comes again: operators are known by it."""

    @property
    def held(self) -> list[Allocation]:
        """All memory that was taken, in order."""
        return list(map(Allocation, self._sizes, self._born, self._died))

    def look(self, place: int) -> None:
        """Before the operator at a place: what is gone by now."""
        while self._gone:
            watched = self._gone.pop()
            del self._alive[watched.address]
            self._died[watched.number] = place

    def note(self, place: int, read: Sequence[int], written: Sequence[torch.UntypedStorage]) -> None:
        """The operator at a place has read storages, by address, and written some, of which some are new."""
        for storage in written:
            address = storage._cdata
            if address not in self._alive and address not in read:
                self._alive[address] = watched = _Watched(storage, self._gone.append)
                watched.address, watched.number = address, len(self._sizes)
                self.keep_address(storage)
                self._sizes.append(storage.nbytes())
                self._born.append(place)
                self._died.append(None)

    def keep_address(self, storage: torch.UntypedStorage) -> None:
        """Let no other storage get the address of one whose memory is not the iteration's, as of a number."""
        self._addresses.append(StorageWeakRef(storage))
