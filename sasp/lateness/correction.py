"""Corrections of a step with a late gradient, for one flat piece of parameters: delay compensation and gap-aware rates.

[known] DC-ASGD-a, S. Zheng et al., Asynchronous stochastic gradient descent with delay compensation, ICML 2017, arXiv
1609.08326: a gradient's first-order change since it was computed, with its own square in the place of the Hessian.
Gap-aware, S. Barkai et al., ICLR 2020, arXiv 1909.10802: a step is the smaller, the further its parameter has moved
since. Staleness-aware, W. Zhang et al., IJCAI 2016, arXiv 1511.05950: the learning rate is divided by the delay.

[ours] Gap-aware rates divide the update and not the gradient, because Adam's update does not depend on the gradient's
size. Both running means begin with their first value.
"""

from __future__ import annotations

import torch

from sasp.core.staleness import StalenessOptions

SQUARES_KEPT = 0.95
"""The running mean of a gradient's squares keeps this share in each step, as in the paper's experiments."""

UPDATES_KEPT = 0.99
"""The running mean of an update's squares keeps this share in each step."""

_TINY = 1e-30


class Correction:
    """The corrections of one flat piece of parameters, from step to step."""

    def __init__(self, options: StalenessOptions) -> None:
        self._options = options
        self._squares: torch.Tensor | None = None
        self._updates: torch.Tensor | None = None

    def rate_divisor(self, delay: int) -> int:
        """What the learning rate of a gradient is divided by that lacks ``delay`` iterations."""
        return max(1, delay) if self._options.rates == "staleness" else 1

    def compensate(self, gradient: torch.Tensor, now: torch.Tensor, then: torch.Tensor | None) -> None:
        """Change ``gradient`` to what it would be with the parameters of ``now``.

        ``then``: those that it was computed with; None: the same. All three have the same shape.
        """
        if not self._options.delay_compensation:
            return
        square = gradient * gradient
        self._squares = _running_mean(self._squares, square, SQUARES_KEPT)
        if then is not None:
            strength = self._options.delay_compensation
            gradient.addcmul_(square.div_((self._squares + 1e-7).sqrt_()), now - then, value=strength)

    def scaled(self, now: torch.Tensor, after: torch.Tensor, then: torch.Tensor | None) -> torch.Tensor | None:
        """Return the parameters to use in the place of ``after`` a step from ``now``; None: the same.

        ``then``: those that the gradient was computed with; None: those of ``now``.
        """
        if self._options.rates != "gap":
            return None
        update = after - now
        self._updates = _running_mean(self._updates, update * update, UPDATES_KEPT)
        if then is None:
            return None
        gap = (now - then).abs_().div_(self._updates.sqrt().add_(_TINY))
        return now + update.div_(gap.add_(1))


def _running_mean(mean: torch.Tensor | None, value: torch.Tensor, kept: float) -> torch.Tensor:
    return value.clone() if mean is None else mean.mul_(kept).add_(value, alpha=1 - kept)
