"""What an evaluation keeps of each group, so that a later run can go on: the result, and what it came from.

A result is taken up again only if it answers the same request on the same datapath. The commit that measured it is
told, not compared: a fix of something else need not cost hours.
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
    """What a result answers, and the commit that measured it."""

    request: Any
    commit: str


@dataclass(frozen=True, slots=True)
class Measured(Generic[R]):
    """A group's result, and the commit that measured it."""

    result: R
    commit: str


def begin(folder: Path) -> None:
    """The group in ``folder`` is going to be measured anew: what lies there is no longer a whole. Raises OSError."""
    (folder / ORIGIN).unlink(missing_ok=True)


def keep(folder: Path, request: Any, commit: str) -> None:
    """The result that lies in ``folder`` is whole, and answers ``request``. Raises OSError."""
    save(folder / ORIGIN, Origin(request, commit))


def kept(folder: Path, request: Any, datapath: str, read: Callable[[Path], R]) -> Measured[R] | None:
    """The whole result that lies in ``folder``, read by ``read``; None: there is none, or it answers something else."""
    try:
        origin = TypeAdapter(Origin).validate_json((folder / ORIGIN).read_bytes())
        # As the value that it was: what an older version did not ask for has its default.
        answered = TypeAdapter(type(request)).validate_json(json.dumps(origin.request))
        result = read(folder)
    except (OSError, ValueError):
        return None
    return Measured(result, origin.commit) if answered == request and result.datapath == datapath else None
