"""The result of a job: rank 0 writes DIR/done/ID.json in one piece when the job ends; who fails writes DIR/failed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from controller.wire import Message, Name

Point = tuple[float, int, float]


class JobResult(Message):
    """The result of a job.

    ``history`` has the seconds since arrival (by rank 0's clock), the iterations done and the metric of each report.
    ``jct`` is the time from arrival to the end of the last iteration in seconds, and None unless the run is complete. A
    ``censored`` job was stopped before its end by the limit, by a signal, or by a failure. A ``capped`` job ended after
    fewer iterations because of ``--iterations-cap``. ``failed`` gives the reason of a failure for people. ``ended`` is
    in seconds since arrival. ``curve`` is the name of the job's curve, and empty where the experiment has its rows.
    """

    id: Name
    architecture: str
    model: str
    curve: str
    iterations: int
    arrival_epoch: float
    history: Annotated[tuple[Annotated[Point, Field(strict=False)], ...], Field(strict=False)]
    jct: float | None
    censored: bool
    capped: bool
    failed: str | None
    ended: float


def done_file(directory: Path, job: str) -> Path:
    """Return the file of a job's result."""
    return directory / "done" / f"{job}.json"


def write_failure(directory: Path, job: str, host: str, reason: str) -> None:
    """Write why a job's task failed on a host. Rank 0 may wait for that task and not know. Raises OSError."""
    write_whole(directory / "failed" / f"{job} on {host}", reason)


def first_failure(directory: Path) -> str | None:
    """Return which job failed where, and why: the first by name; None where none did. Raises OSError."""
    files = sorted(path for path in (directory / "failed").glob("*") if not path.name.startswith("."))
    return f"{files[0].name}: {files[0].read_text()}" if files else None


def read_result(path: Path) -> JobResult:
    """Read a job's result. Raises OSError, and ValueError with the file's name where it is not a result."""
    try:
        return JobResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path}: not a job's result: {error}") from error


def write_whole(path: Path, text: str) -> None:
    """Write a file so that readers see all of it or nothing. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A leading dot hides the scratch file from programs that watch the folder for *.json.
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text)
    scratch.replace(path)
