"""PyTorch: the progress of a training loop, with or without DDP, from the steps of its optimizer."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, SupportsFloat

import torch
from torch import distributed

from host_reporter.integrations.meter import Folder, Meter
from host_reporter.training.launch import own_host


class Watch:
    """Counts the steps of an optimizer as the iterations of a job until ``end``. Only rank 0 reports them.

    With DDP a step is one exchange of gradients, however many batches are accumulated for it. ``begin`` is the number
    of iterations that were done before, for example before a checkpoint. ``target`` is the value of the metric that you
    call done. No method raises, and none waits for the device.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        job: str | None = None,
        *,
        begin: int = 0,
        target: float | None = None,
        directory: Folder = None,
    ) -> None:
        self.iteration = begin
        self._meter = Meter(job, directory, target=target, reports=_rank() == 0)
        self._hook = optimizer.register_step_post_hook(self._stepped)

    def metric(self, value: SupportsFloat | torch.Tensor) -> None:
        """Report the metric now. Another thread reads the number of a tensor once the device has computed it.

        A metric that is no finite number says that the job has diverged.
        """
        if isinstance(value, torch.Tensor):
            value = value.detach().clone()
        self._meter.measured(self.iteration, value)

    def end(self, *, failed: bool = False) -> None:
        """Report the end of the training."""
        self._hook.remove()
        self._meter.end(failed=failed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.end(failed=kind is not None)

    def _stepped(self, *_: Any) -> None:
        self.iteration += 1
        self._meter.step(self.iteration)


def hosts() -> tuple[str, ...]:
    """Returns the hosts of all ranks, in the order of their first ranks. All ranks must call it at the same time."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return (own_host(),)
    names: list[str] = [""] * distributed.get_world_size()
    distributed.all_gather_object(names, own_host())
    return tuple(dict.fromkeys(names))


def _rank() -> int:
    """Returns the rank of this process in its process group; 0 where there is no process group."""
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return 0
