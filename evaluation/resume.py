"""Resuming an evaluation: the result of each group is kept, with the request that it answers.

A later run takes a result over only if it answers the same request on the same datapath. The commit that measured it is
reported but not compared, because a repair of something else need not cost hours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from pydantic import TypeAdapter

from evaluation.claim import R
from topologies.lab.results import save

ORIGIN = "origin.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """The request that a result answers, and the commit that measured it."""

    request: Any
    commit: str


@dataclass(frozen=True, slots=True)
class Measured(Generic[R]):
    """A group's result, and the commit that measured it."""

    result: R
    commit: str


def mark_unfinished(folder: Path) -> None:
    """Mark the result in ``folder`` as unfinished, because its group is measured again. Raises OSError."""
    (folder / ORIGIN).unlink(missing_ok=True)


def mark_whole(folder: Path, request: Any, commit: str) -> None:
    """Mark the result in ``folder`` as whole, and as the answer to ``request``. Raises OSError."""
    save(folder / ORIGIN, Origin(request, commit))


def load(folder: Path, request: Any, datapath: str, read: Callable[[Path], R]) -> Measured[R] | None:
    """Return the whole result in ``folder``, which ``read`` reads.

    Returns None where there is none, or where it answers another request or comes from another datapath.
    """
    try:
        origin = TypeAdapter(Origin).validate_json((folder / ORIGIN).read_bytes())
        # Compared as a value, so that a field that an older version did not have counts as its default.
        answered = TypeAdapter(type(request)).validate_json(json.dumps(origin.request))
        result = read(folder)
    except (OSError, ValueError):
        return None
    return Measured(result, origin.commit) if answered == request and result.datapath == datapath else None
