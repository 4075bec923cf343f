"""How workers of a parameter-server job keep in step: BSP, SSP(s), ASP, each with and without SaSP. Pure.

[known] BSP: nobody begins an iteration before all have finished the last. SSP(s), Q. Ho et al., More effective
distributed ML via a stale synchronous parallel parameter server, NIPS 2013: who is furthest ahead may lead the last by
s iterations. ASP: nobody waits for another.

[ours] With SaSP a worker's computing is decoupled from its own communication, by at most s iterations; so the bound
that SSP(s) gives, every update of iteration i - 1 - s or older is seen in iteration i, stays the same. [known] BSP with
such a lead makes one step an iteration with the mean of all workers' gradients, which are late by at most s: Pipe-SGD,
Y. Li et al., NeurIPS 2018, arXiv 1811.03619.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sasp.core.errors import SaspError

Name = Literal["bsp", "ssp", "asp"]
Sending = Literal["after", "overlap", "sasp"]
"""When gradients leave: after the whole backward pass; each as soon as it is there, in that order; by priority."""

MAX_STALENESS = 1_000_000
_NAMES: Mapping[str, Name] = {"bsp": "bsp", "ssp": "ssp", "asp": "asp"}
_SENDING: Mapping[str, Sending] = {"overlap": "overlap", "sasp": "sasp"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """``staleness`` is SSP's s; for BSP and ASP with SaSP how far computing may lead the worker's own communication."""

    name: Name = "bsp"
    staleness: int = 0
    sending: Sending = "sasp"

    def __post_init__(self) -> None:
        if not 0 <= self.staleness <= MAX_STALENESS:
            raise SaspError(f"staleness is {self.staleness}; it must be a whole number of 0 to {MAX_STALENESS}")
        if self.name == "bsp" and self.staleness and self.sending != "sasp":
            raise SaspError(f"bsp has a staleness only with sasp; without, it is ssp:{self.staleness}")
        if self.name == "ssp" and not self.staleness:
            raise SaspError("ssp needs a staleness of at least 1; with 0 it is bsp")
        if self.name == "asp" and self.staleness and self.sending != "sasp":
            raise SaspError("asp bounds nothing, so it has a staleness only with sasp, for the worker's own two clocks")

    @property
    def lead(self) -> int:
        """Iterations that a worker's computing may lead its own communication."""
        return self.staleness if self.sending == "sasp" else 0

    @property
    def release(self) -> int | None:
        """How far behind a worker's iteration the slowest may be when that iteration is answered; None: any."""
        if self.name == "asp":
            return None
        return self.staleness - self.lead

    @property
    def bound(self) -> int | None:
        """In iteration i every worker has seen all updates of iterations up to i - 1 - bound; None: no bound."""
        return None if self.release is None else self.lead + self.release

    @property
    def together(self) -> bool:
        """Whether all workers' gradients of an iteration make one step of the optimiser (else each makes its own)."""
        return self.name == "bsp"

    def __str__(self) -> str:
        base = self.name if self.name != "ssp" else f"ssp:{self.staleness}"
        if self.sending == "after":
            return base
        return f"{base}+{self.sending}" + (f":{self.staleness}" if self.name != "ssp" and self.staleness else "")


def parse(text: str) -> Scheme:
    """``bsp``, ``ssp:S`` or ``asp``, then perhaps ``+overlap`` or ``+sasp`` (of bsp and asp also ``+sasp:S``).

    Raises SaspError.
    """
    fault = (
        f"{text!r}: it must be bsp, ssp:S such as ssp:2, or asp, and may end in +overlap or +sasp "
        "(bsp+sasp:S, asp+sasp:S)"
    )
    base, plus, sending = text.partition("+")
    name, colon, number = base.partition(":")
    sending, second_colon, own = sending.partition(":")
    timing: Sending | None = "after" if not plus else _SENDING.get(sending)
    known = _NAMES.get(name)
    if timing is None or known is None or bool(colon) != (name == "ssp"):
        raise SaspError(fault)
    if second_colon and (known == "ssp" or timing != "sasp"):
        raise SaspError(fault)
    digits = own if second_colon else number
    if digits == "":
        if colon or second_colon:
            raise SaspError(fault)
        digits = "0"
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 7):
        raise SaspError(fault)
    return Scheme(known, int(digits), timing)


class Versions:
    """The parameter server's record: which iteration each worker has sent of each chunk, and which answers are due.

    A worker that has left counts as infinitely far: it holds nobody back, and is answered no more.
    """

    def __init__(self, workers: int, chunks: int, scheme: Scheme) -> None:
        if workers < 1:
            raise SaspError(f"{workers} workers; there must be at least 1")
        self._release = scheme.release
        self._lead = scheme.lead
        self._there = list(range(workers))
        self._pushed = [[0] * workers for _ in range(chunks)]
        self._answered = [[0] * workers for _ in range(chunks)]

    def push(self, worker: int, chunk: int, iteration: int) -> list[tuple[int, int]]:
        """``worker`` has sent ``chunk`` of ``iteration``: (worker, iteration) of the answers that are due now.

        One answer stands for all earlier ones of that worker. Raises SaspError for anything but the next iteration, and
        for one that the worker's clocks cannot have allowed yet.
        """
        pushed, answered = self._pushed[chunk], self._answered[chunk]
        if worker not in self._there:
            raise SaspError(f"worker {worker} sent iteration {iteration} of chunk {chunk} after it was done")
        if iteration != pushed[worker] + 1:
            raise SaspError(f"worker {worker} sent iteration {iteration} of chunk {chunk} after {pushed[worker]}")
        if iteration > answered[worker] + 1 + self._lead:
            raise SaspError(
                f"worker {worker} sent iteration {iteration} of chunk {chunk} although it was answered up to "
                f"{answered[worker]} and may lead that by {self._lead}"
            )
        pushed[worker] = iteration
        return self._due(chunk)

    def leave(self, worker: int) -> list[tuple[int, int, int]]:
        """Remove ``worker``; return (chunk, worker, iteration) of the answers to others that are due now."""
        self._there = [other for other in self._there if other != worker]
        return [(chunk, other, due) for chunk in range(len(self._pushed)) for other, due in self._due(chunk)]

    def least(self, chunk: int) -> int:
        """The iteration up to which every worker that is still there has sent this chunk; without any, the last one."""
        pushed = self._pushed[chunk]
        return min((pushed[worker] for worker in self._there), default=max(pushed))

    def clock(self, worker: int) -> int:
        """Iterations of which a worker has sent all chunks."""
        return min(row[worker] for row in self._pushed)

    def _due(self, chunk: int) -> list[tuple[int, int]]:
        pushed, answered = self._pushed[chunk], self._answered[chunk]
        least, answers = self.least(chunk), []
        for worker in self._there:
            due = pushed[worker] if self._release is None else min(pushed[worker], least + self._release)
            if due > answered[worker]:
                answered[worker] = due
                answers.append((worker, due))
        return answers
