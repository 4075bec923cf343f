"""The moments of a job's tasks on disk: each task leaves a file in the folder of its job when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from topologies.trainer.barriers.record import ServerMoments, WorkerMoments
from topologies.trainer.results import write_whole

FOLDER = "barriers"

M = TypeVar("M", WorkerMoments, ServerMoments)


class JobMoments(NamedTuple):
    """The moments of a job's server and of its workers, in the order of their ranks."""

    server: ServerMoments
    workers: tuple[WorkerMoments, ...]


def moments_file(directory: Path, job: str, rank: int) -> Path:
    """Returns the file with the moments of a task; rank 0 is the server."""
    return directory / FOLDER / job / f"{rank}.json"


def write(directory: Path, job: str, rank: int, moments: WorkerMoments | ServerMoments) -> None:
    """Write the moments of a task. Raises OSError."""
    text = TypeAdapter(type(moments)).dump_json(moments).decode()
    write_whole(moments_file(directory, job, rank), f"{text}\n")


def read(directory: Path, job: str, workers: int) -> JobMoments | None:
    """Returns the moments of a job with so many workers; None where one of its tasks has left no file.

    Raises ValueError for a file of another format, and OSError.
    """
    files = [moments_file(directory, job, rank) for rank in range(workers + 1)]
    if not all(path.exists() for path in files):
        return None
    return JobMoments(_read(files[0], ServerMoments), tuple(_read(path, WorkerMoments) for path in files[1:]))


def _read(path: Path, kind: type[M]) -> M:
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = "".join(f"{place}: " for place in first["loc"])
        raise ValueError(f"{path}: not the moments of a task: {where}{first['msg']}") from error
