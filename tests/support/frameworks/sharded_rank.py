"""A rank of a real FSDP training: ``python -m tests.support.frameworks.sharded_rank RANK WORLD FILE RESHARD``.

Rank 0 tells each collective of one iteration as a line of JSON: its name, the bytes of all ranks' parts together, and
whether the rank goes on meanwhile.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from tests.support.frameworks.prophet_subjects import sharded


def main(rank: int, world: int, store: Path, *, reshard: bool) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    model, batch = sharded()
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh)
    told: list[list[Any]] = []
    dist.all_gather_single = _watched(dist.all_gather_single, "gather", "output_tensor", told)
    dist.reduce_scatter_single = _watched(dist.reduce_scatter_single, "scatter", "input", told)
    for _ in range(2):
        told.clear()
        model(batch).mean().backward()
        model.zero_grad()
    if rank == 0:
        sys.stdout.write("".join(json.dumps(line) + "\n" for line in told))
        sys.stdout.flush()
    dist.barrier()
    # PyTorch's own threads may abort a process that takes itself apart; what is asked was told by then.
    os._exit(0)


def _watched(call: Callable[..., Any], name: str, whole: str, told: list[list[Any]]) -> Callable[..., Any]:
    def watched(*arguments: Any, **options: Any) -> Any:
        tensor = options[whole] if whole in options else arguments[0 if name == "gather" else 1]
        told.append([name, tensor.numel() * tensor.element_size(), options.get("async_op", False)])
        return call(*arguments, **options)

    return watched


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), reshard=sys.argv[4] == "reshard")
