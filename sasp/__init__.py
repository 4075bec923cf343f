"""SaSP makes one data-parallel PyTorch job faster: each worker computes while its gradients are still on the network.

A gradient is sent in chunks. The chunks of front layers go first, because the next forward pass needs them first, and a
parameter server serves the slowest worker first. A training script needs one more line::

    import sasp
    model, optimizer = sasp.wrap(model, optimizer)

``wrap`` exchanges gradients by all-reduce. ``join`` uses a parameter server, which ``python -m sasp`` starts. PyTorch
is loaded only when one of the two is called.

[known] A thesis of 2019 decouples computing from communication inside a job: 25 to 50 % faster over several
synchronisation schemes. [ours] How that is done here; docs/sasp.md keeps the two apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sasp.core import defaults
from sasp.core.chunks import CHUNK_BYTES
from sasp.core.errors import SaspError
from sasp.core.scheme import Scheme, parse
from sasp.core.staleness import Prediction, Rates, StalenessOptions
from sasp.training.options import AllReduceOptions

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from sasp.training.optimizer import DecoupledOptimizer

__all__ = ["CHUNK_BYTES", "SaspError", "Scheme", "join", "parse", "wrap"]


def wrap(
    model: nn.Module,
    optimizer: Optimizer,
    *,
    staleness: int = defaults.STALENESS,
    partial: bool | None = None,
    prediction: Prediction | None = None,
    delay_compensation: float = 0.0,
    rates: Rates = "plain",
    halves: bool = False,
    group: Any = None,
    chunk_bytes: int = CHUNK_BYTES,
    patience: float | None = None,
) -> tuple[nn.Module, DecoupledOptimizer]:
    """Train ``model`` data-parallel by all-reduce; computing leads the network by at most ``staleness`` iterations.

    Call it instead of DistributedDataParallel, after ``torch.distributed.init_process_group``, on every rank of
    ``group`` (None: all). Call ``optimizer.flush()`` before parameters are read or changed, ``optimizer.close()`` at
    the end. ``patience``: a rank that is silent for so many seconds ends the job (None: torch.distributed's own limit,
    half an hour).

    With a staleness of 0 the parameters are those of DDP, up to the order in which numbers are added. Where gradients
    may be late, ``partial`` is True and ``prediction`` is "local" by default; beside ``delay_compensation``, ``rates``
    and ``halves`` they are off.

    ``partial``: only gradients of layers whose transfer does not fit beside the computing are late; the job measures
    that at its beginning and every thousand iterations.

    What is done about late gradients: ``prediction`` says with which parameters a layer computes meanwhile ("momentum":
    ahead by its last update for each iteration in flight; "local": ahead by steps with this rank's own gradients);
    ``delay_compensation`` is DC-ASGD's lambda; ``rates`` makes steps smaller ("staleness": divided by the delay; "gap":
    divided by how far the parameter has moved). ``halves``: two calls of ``step`` are the half batches of one step, of
    which one computes while the other is in flight (with a staleness of 1). Raises SaspError.
    """
    from sasp.training import wrapping  # noqa: PLC0415 (torch is loaded by who trains)

    others = bool(delay_compensation) or rates != "plain" or halves
    partial, prediction = defaults.ways(partial, prediction, late=staleness != 0, others=others)
    late = StalenessOptions(prediction, delay_compensation, rates)
    options = AllReduceOptions(group, chunk_bytes, patience, late, partial, halves)
    return wrapping.over_all_reduce(model, optimizer, staleness, options)


def join(
    model: nn.Module,
    optimizer: Optimizer,
    *,
    server: tuple[str, int],
    rank: int,
    scheme: Scheme | str = defaults.SCHEME,
    partial: bool | None = None,
    prediction: Prediction | None = None,
    delay_compensation: float = 0.0,
    rates: Rates = "plain",
    token: str = "",
    chunk_bytes: int = CHUNK_BYTES,
    patience: float = 60.0,
) -> tuple[nn.Module, DecoupledOptimizer]:
    """Train ``model`` as worker ``rank`` (from 0) of the parameter server at ``server`` (address, port).

    ``scheme``: bsp, ssp:S or asp, each with ``+overlap`` or ``+sasp`` (of bsp and asp also ``+sasp:S``), as the server
    was started with. The optimiser's kind and options are the server's from worker 0 on; learning rates may change from
    iteration to iteration. For ``partial``, ``prediction``, ``delay_compensation`` and ``rates`` see ``wrap``; for SSP
    and ASP they are off by default. ``patience``: seconds to wait for the server. Raises SaspError.
    """
    from sasp.training import wrapping  # noqa: PLC0415 (torch is loaded by who trains)
    from sasp.training.transports.greeting import JoinOptions  # noqa: PLC0415 (as above)

    known = parse(scheme) if isinstance(scheme, str) else scheme
    others = bool(delay_compensation) or rates != "plain"
    late_in_step = known.together and known.lead > 0
    partial, prediction = defaults.ways(partial, prediction, late=late_in_step, others=others)
    late = StalenessOptions(prediction, delay_compensation, rates)
    who = JoinOptions(rank, known, token, chunk_bytes, patience, late, partial)
    return wrapping.over_server(model, optimizer, server, who)
