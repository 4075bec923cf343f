"""The plans that DeepProphet is compared with, by a rule that was written before any of them was measured.

The rule: each plan is trained by each model whose layers it can spread, over links of 1 Gbit/s, with the sizes below.
``tensor`` cuts linear layers, so the network of convolutions has no such case. A rank has one thread, and no plan has
more than two ranks, so that two cores are enough. All cases count, whatever their error is. A plan's figure is the mean
over its models; plans are not added up with each other, nor with the other figures of the claim.

The models are in ``evaluation.deepprophet.plans.models``. Each is a chain of a first part, four blocks and a last part,
so that one mapping fits all of them. They and their layers are in no set that a device is calibrated with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

RATE_BPS = 1e9
RANKS = 2
PARTS = 4
"""An accumulated batch has so many batches, and a pipeline's has so many parts."""

BATCH_SIZES = {"gpt": 8, "mlp": 128, "cnn": 16}
"""The examples of one batch of an accumulated one, or of one part that goes through a pipeline, by model."""

_BLOCKS = ["blocks.*"]
_STAGES = [["first", "blocks.0", "blocks.1"], ["blocks.2", "blocks.3", "last"]]
_LAYERS: Mapping[str, Mapping[str, Any]] = {
    "gpt": {
        "columns": ["blocks.*.attention.[qkv]", "blocks.*.wide"],
        "rows": ["blocks.*.attention.out", "blocks.*.narrow"],
    },
    "mlp": {"columns": ["blocks.*.wide"], "rows": ["blocks.*.narrow"]},
}
"""The linear layers that ranks cut, by model."""

_MAPPINGS: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "accumulate": (1, {"accumulate": PARTS}),
    "checkpoint": (1, {"checkpoint": _BLOCKS}),
    "accumulate-ddp": (RANKS, {"accumulate": PARTS}),
    "fsdp": (RANKS, {"fsdp": {"units": _BLOCKS, "reshard_after_forward": True}}),
    "fsdp-keep": (RANKS, {"fsdp": {"units": _BLOCKS, "reshard_after_forward": False}}),
    "pipeline-gpipe": (RANKS, {"pipeline": {"stages": _STAGES, "micro_batches": PARTS, "schedule": "gpipe"}}),
    "pipeline-1f1b": (RANKS, {"pipeline": {"stages": _STAGES, "micro_batches": PARTS, "schedule": "1f1b"}}),
}
"""The ranks and the mapping of each plan that is the same for all models."""

PLANS = (*_MAPPINGS, "tensor")
_QUICK = (("checkpoint", "mlp"), ("fsdp", "gpt"))


@dataclass(frozen=True, slots=True)
class PlanCase:
    """A model that is trained by a plan. ``rate_bps`` is None for a single rank. ``mapping`` is a mapping file's."""

    plan: str
    model: str
    batch_size: int
    ranks: int
    rate_bps: float | None
    mapping: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Returns the case's name, which no other case has."""
        return f"plan-{self.plan}-{self.model}"


def cases(*, quick: bool = False) -> list[PlanCase]:
    """Returns every case of the rule; ``quick`` takes two of them."""
    return [case for case in _all_cases() if not quick or (case.plan, case.model) in _QUICK]


def _all_cases() -> Iterator[PlanCase]:
    for plan in PLANS:
        for model, batch_size in BATCH_SIZES.items():
            if plan in _MAPPINGS:
                ranks, mapping = _MAPPINGS[plan]
            elif model in _LAYERS:
                ranks, mapping = RANKS, {"tensor": {"ranks": RANKS, **_LAYERS[model]}}
            else:
                continue
            yield PlanCase(plan, model, batch_size, ranks, RATE_BPS if ranks > 1 else None, mapping)
