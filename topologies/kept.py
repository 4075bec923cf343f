"""What an evaluation keeps of each group of arms, so that a later run can go on: the result, and what it came from.

A result is taken up again only if it answers the same request on the same datapath. The commit that measured it is
told, not compared: a fix of something else need not cost hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from topologies.lab import RESULT
from topologies.lab_result import LabRequest, LabResult, load_result, save

ORIGIN = "origin.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """What a result answers, and the commit that measured it."""

    request: LabRequest
    commit: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A group's result, and the commit that measured it."""

    result: LabResult
    commit: str


def begin(folder: Path) -> None:
    """The group in ``folder`` is going to be measured anew: what lies there is no longer a whole. Raises OSError."""
    (folder / ORIGIN).unlink(missing_ok=True)


def keep(folder: Path, request: LabRequest, commit: str) -> None:
    """The result that lies in ``folder`` is whole, and answers ``request``. Raises OSError."""
    save(folder / ORIGIN, Origin(request, commit))


def kept(folder: Path, request: LabRequest, datapath: str) -> Measured | None:
    """The whole result that lies in ``folder``; None where there is none, or it answers something else."""
    try:
        origin = TypeAdapter(Origin).validate_json((folder / ORIGIN).read_bytes())
        result = load_result(folder / RESULT)
    except (OSError, ValidationError):
        return None
    return Measured(result, origin.commit) if origin.request == request and result.datapath == datapath else None
