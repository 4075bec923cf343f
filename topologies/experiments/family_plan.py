"""The family of a job in an experiment, and whose it is."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from controller.wire import PRINTABLE_PATTERN

USER = "lab"
"""All families of an experiment are this user's, so that jobs on different hosts share them."""

FamilyName = Annotated[str, StringConstraints(max_length=127, pattern=PRINTABLE_PATTERN)]
"""The name of a family as a job's spec takes it. An empty one is none."""
