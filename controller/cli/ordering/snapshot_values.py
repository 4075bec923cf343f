"""What all parts of a snapshot file share: their base, and the ranges of values."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Moment = Annotated[float, Field(ge=-1e15, le=1e15)]
MetricValue = Annotated[float, Field(ge=-1e30, le=1e30)]


class Part(BaseModel):
    """Base of every part of the file: no unknown keys, no silent type changes, no infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)
