"""The models that DeepProphet is evaluated on, by name: with real weights to be measured. Needs PyTorch."""

from __future__ import annotations

import torch

from deepprophet.graph.subject import Subject, subject
from evaluation.deepprophet import models
from evaluation.deepprophet.drawn import listed, networks
from evaluation.deepprophet.plans import models as plan_models

CPU = torch.device("cpu")


def made(name: str, batch_size: int) -> Subject:
    """Returns a model with a batch. Raises KeyError."""
    if name in plan_models.MODELS:
        return subject(plan_models.MODELS[name](batch_size))
    drawn = listed.models().get(name)
    if drawn is None:
        return subject(models.factory(name)(batch_size))
    if drawn.seed is not None:
        return subject(networks.factory(drawn.seed, drawn.number)(batch_size))
    from evaluation.deepprophet.drawn import library  # noqa: PLC0415 - transformers takes seconds

    return library.made(drawn.config or {}, drawn.class_name, batch_size, drawn.length, CPU)
