"""What a user is told of the optimiser, where gradients may be late and nothing makes up for it.

[known] SGD with Nesterov's momentum at a delay of one is the spike compensation of A. Kosson et al., MLSys 2021, arXiv
2003.11666. Adaptive optimisers take full steps in a late direction however small its gradient is.
"""

from __future__ import annotations

from torch.optim import Optimizer

from sasp.core.staleness import StalenessOptions

ADAPTIVE = frozenset({"Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta"})


def advice(optimizer: Optimizer, lead: int, late: StalenessOptions) -> str | None:
    """Return a line for people, or None. ``lead``: by how many iterations layers may be late."""
    if lead == 0 or late.prediction != "none" or late.corrects:
        return None
    kind, group = type(optimizer).__name__, optimizer.param_groups[0]
    how_late = f"{lead} iteration{'s' if lead > 1 else ''}"
    if kind in ADAPTIVE:
        return (
            f"{kind} with gradients that may be {how_late} late may need a lower learning rate; "
            "prediction='momentum' makes up for a part of it"
        )
    if kind == "SGD" and group.get("momentum") and not group.get("nesterov"):
        return (
            f"SGD with momentum {group['momentum']:g} and gradients that may be {how_late} late: "
            "nesterov=True makes up for one iteration, prediction='momentum' for all"
        )
    return None
