"""Which plan of training lays an iteration out: copies, shards, cut layers or stages. Pure.

Workers that hold the model once stand next to each other, as launchers number them.
"""

from __future__ import annotations

from dataclasses import replace

from deepprophet.errors import InputError
from deepprophet.predict import data_parallel, pipelined, sharded
from deepprophet.predict.buckets import Bucket, buckets
from deepprophet.predict.exchange import Group, Wire
from deepprophet.predict.layout import Layout, Work
from deepprophet.predict.mapping import MappingSpec


def laid_out(
    work: Work, wire: Wire, mapping: MappingSpec, *, is_accelerator: bool
) -> tuple[Layout, tuple[Bucket, ...]]:
    """Return the iteration, and the buckets of its gradients; () where the plan has none. Raises InputError.

    ``is_accelerator``: a device whose queue lets it compute while it exchanges.
    """
    _check(wire, mapping)
    if mapping.fsdp is not None:
        return sharded.layout(work, wire, mapping.fsdp, is_accelerator=is_accelerator), ()
    count = mapping.ranks_of_a_copy
    together = _together(wire, count)
    # The first workers of all copies have the same part of the model, and so have the second.
    spread = replace(wire, groups=tuple(wire.placement.workers[part::count] for part in range(count)))
    if mapping.pipeline is not None:
        return pipelined.layout(work, spread, mapping.pipeline, together), ()
    cut = tuple(buckets(work.graph))
    return data_parallel.layout(work, cut, spread, together), cut


def _together(wire: Wire, count: int) -> tuple[Group, ...]:
    """The workers of each copy."""
    workers = wire.placement.workers
    return tuple(workers[first : first + count] for first in range(0, len(workers), count))


def _check(wire: Wire, mapping: MappingSpec) -> None:
    spread = next((name for name in ("fsdp", "tensor", "pipeline") if getattr(mapping, name) is not None), None)
    if spread is not None and wire.architecture != "ring":
        raise InputError(f"the mapping has {spread}, whose workers exchange in rings; give --architecture ring")
