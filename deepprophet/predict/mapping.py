"""How a model is spread over ranks and micro-batches, beyond a copy a worker. Values, from YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from controller.wire import Message
from deepprophet.costs import values_file
from deepprophet.errors import InputError

MAX_MICRO_BATCHES = 4096

_Pattern = Annotated[str, Field(min_length=1, max_length=256)]
_Patterns = Annotated[tuple[_Pattern, ...], Field(strict=False, max_length=1024)]
_Stage = Annotated[_Patterns, Field(min_length=1)]
_MicroBatches = Annotated[int, Field(ge=1, le=MAX_MICRO_BATCHES)]


class Sharding(Message):
    """FSDP: modules whose parameters are kept in parts, one at each worker, and gathered while they compute.

    ``reshard_after_forward``: they are given up after the forward pass, and gathered again for the backward pass.
    """

    units: Annotated[_Patterns, Field(min_length=1)]
    reshard_after_forward: bool = True


class TensorParallel(Message):
    """Linear layers that ``ranks`` workers compute together, cut by ``columns`` and then by ``rows``."""

    ranks: Annotated[int, Field(ge=2, le=4096)]
    columns: _Patterns
    rows: Annotated[_Patterns, Field(min_length=1)]


class Pipeline(Message):
    """Stages of modules, one after the other, each on a worker; batches go through it in parts.

    A module that no stage names is computed where the one before it is.
    """

    stages: Annotated[tuple[_Stage, ...], Field(strict=False, min_length=2, max_length=256)]
    micro_batches: _MicroBatches = 1
    schedule: Literal["1f1b", "gpipe"] = "1f1b"


class MappingSpec(Message):
    """The whole file. ``accumulate``: batches whose gradients are added up; ``checkpoint``: modules that run again."""

    accumulate: _MicroBatches = 1
    checkpoint: _Patterns = ()
    fsdp: Sharding | None = None
    tensor: TensorParallel | None = None
    pipeline: Pipeline | None = None

    @model_validator(mode="after")
    def _is_predicted(self) -> Self:
        spread = [name for name in ("fsdp", "tensor", "pipeline") if getattr(self, name) is not None]
        if len(spread) > 1:
            raise ValueError(f"{' and '.join(spread)} together are not predicted; give one of them")
        if self.pipeline is not None and self.accumulate > 1:
            raise ValueError("a pipeline adds up its micro_batches; give accumulate without one")
        if self.fsdp is not None and self.accumulate > 1:
            raise ValueError("accumulate with fsdp is not predicted; give one of them")
        return self

    @property
    def ranks_of_a_copy(self) -> int:
        """So many workers hold the model once."""
        if self.tensor is not None:
            return self.tensor.ranks
        return 1 if self.pipeline is None else len(self.pipeline.stages)

    def copies(self, workers: int) -> int:
        """How many times so many workers hold the model. Raises InputError where it does not come out even."""
        if workers % self.ranks_of_a_copy:
            raise InputError(
                f"--workers {workers}: the mapping needs {self.ranks_of_a_copy} workers for the model once, so their "
                "number must be a multiple of that"
            )
        return workers // self.ranks_of_a_copy


PLAIN = MappingSpec()
"""A copy of the model at each worker."""


def read(path: Path) -> MappingSpec:
    """A mapping file, YAML or JSON. Raises InputError, with the line and the field."""
    return values_file.read(path, MappingSpec, f"a mapping: {', '.join(MappingSpec.model_fields)}")
