"""The base of every body, names, and ranges of numbers, which all messages share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from controller.documents.explained_model import ExplainedModel
from controller.model import MAX_RUNGS

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""A job's, host's or stage's id: 1 to 63 letters, digits, dots, dashes, underscores."""

PRINTABLE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"
"""Allow no control characters, and none that change the direction of text: it is shown on terminals and in logs."""

UserName = Annotated[str, StringConstraints(min_length=1, max_length=127, pattern=PRINTABLE_PATTERN)]
"""The name of a Unix user."""
Label = Annotated[str, StringConstraints(max_length=127, pattern=PRINTABLE_PATTERN)]
"""A name for people, such as that of a model. It may be empty."""
TcpPort = Annotated[int, Field(ge=1, le=65535)]
MAX_BYTES = 1e18
Bytes = Annotated[float, Field(ge=0, le=MAX_BYTES)]
Seconds = Annotated[float, Field(ge=0, le=1e12)]
Iterations = Annotated[float, Field(ge=0, le=1e15)]
Unit = Literal["iteration", "epoch"]
"""What progress counts."""
MIN_POSITIVE, MAX_POSITIVE = 1e-9, 1e9
RunLength = Annotated[float, Field(ge=1e-9, le=1e15)]
"""The iterations of a whole run."""
Rungs = Annotated[int, Field(ge=0, le=MAX_RUNGS)]
"""A number of rungs of a study."""
Positive = Annotated[float, Field(ge=MIN_POSITIVE, le=MAX_POSITIVE)]
MAX_METRIC = 1e30
MetricValue = Annotated[float, Field(ge=-MAX_METRIC, le=MAX_METRIC)]

MAX_BODY_BYTES = 4 * 2**20
"""A larger request body is refused before it is read (413)."""


class Message(ExplainedModel):
    """Base of every body: immutable, no unknown fields, no NaN or infinity, no silent type changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)
