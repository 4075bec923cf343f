"""A chunk of parameters, its optimiser, and what its server remembers so that late gradients can be corrected.

Only where the job asks for a correction does the server keep what it has sent: for each worker as many contents of a
chunk as it can have gradients in flight, and one more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import torch

from sasp.core.errors import SaspError
from sasp.core.staleness import StalenessOptions
from sasp.lateness.correction import Correction


class Sent(NamedTuple):
    """A chunk's parameters, a copy, after ``steps`` steps of it."""

    steps: int
    parameters: torch.Tensor


class LateGradients(NamedTuple):
    """One worker's gradients of a chunk, and what they were computed with; None: not known."""

    values: torch.Tensor
    then: Sent | None


@dataclass(slots=True)
class Together:
    """Gradients of a chunk in one iteration, of the ``workers`` that have sent theirs; ``rate``: the last one's.

    They are one sum, unless each is to be corrected by itself.
    """

    gradients: list[LateGradients] = field(default_factory=list)
    rate: float = 0.0
    workers: int = 0

    def add(self, late: LateGradients, rate: float, *, keep_apart: bool) -> None:
        """Add a worker's."""
        if self.gradients and not keep_apart:
            self.gradients[0].values.add_(late.values)
        else:
            self.gradients.append(late)
        self.rate = rate
        self.workers += 1


class LateChunk:
    """A chunk, flat, and the optimiser that ``make`` makes for it."""

    def __init__(
        self, flat: torch.Tensor, make: Callable[[torch.nn.Parameter], torch.optim.Optimizer], late: StalenessOptions
    ) -> None:
        self.parameter = torch.nn.Parameter(flat.clone())
        self._optimizer = make(self.parameter)
        self._late = late
        self._correction = Correction(late)
        self._steps = 0

    def copy(self) -> Sent:
        """The parameters as they are now."""
        return Sent(self._steps, self.parameter.detach().clone())

    def step(self, gradients: Sequence[LateGradients], rate: float, divisor: int) -> None:
        """Take one step with the sum of the gradients divided by ``divisor``. Raises SaspError."""
        try:
            self._step(gradients, rate, divisor)
        except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
            why = str(error).partition("\n")[0]
            raise SaspError(f"its gradients cannot be applied with a learning rate of {rate:g}: {why}") from error
        self._steps += 1

    def _step(self, gradients: Sequence[LateGradients], rate: float, divisor: int) -> None:
        if not self._late.corrects:
            self._take(gradients[0].values.div_(divisor), rate)
            return
        now = self.parameter.detach().clone()
        earlier = [self._earlier(late.then) for late in gradients]
        for late, sent in zip(gradients, earlier, strict=True):
            self._correction.compensate(late.values, now, None if sent is None else sent.parameters)
        known = [sent for sent in earlier if sent is not None]
        then = torch.stack([sent.parameters for sent in known]).mean(0) if known else None
        delay = max((self._steps - sent.steps for sent in known), default=0)
        summed = reduce(torch.add, [late.values for late in gradients])
        self._take(summed / divisor, rate / self._correction.rate_divisor(delay))
        if (scaled := self._correction.scaled(now, self.parameter.detach(), then)) is not None:
            with torch.no_grad():
                self.parameter.copy_(scaled)

    def _earlier(self, sent: Sent | None) -> Sent | None:
        """None where no step was taken since: then there is nothing to correct."""
        return sent if sent is not None and sent.steps < self._steps else None

    def _take(self, gradient: torch.Tensor, rate: float) -> None:
        self.parameter.grad = gradient
        self._optimizer.param_groups[0]["lr"] = rate
        self._optimizer.step()
        self.parameter.grad = None


class SentContents:
    """What was sent to each worker, by chunk and by the worker's iteration that it answers, while it may be used."""

    def __init__(self) -> None:
        self._sent: dict[tuple[int, int], dict[int, Sent]] = {}

    def note(self, rank: int, chunk: int, iteration: int, sent: Sent) -> None:
        """``sent`` goes to the worker as the answer to its ``iteration``."""
        self._sent.setdefault((rank, chunk), {})[iteration] = sent

    def used(self, rank: int, chunk: int, iteration: int) -> Sent | None:
        """Return what answered ``iteration``, and forget older ones: a worker never goes back."""
        answers = self._sent.get((rank, chunk), {})
        for older in [known for known in answers if known < iteration]:
            del answers[older]
        return answers.get(iteration)

    def forget(self, rank: int) -> None:
        """The worker is gone."""
        self._sent = {place: answers for place, answers in self._sent.items() if place[0] != rank}
