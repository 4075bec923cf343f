"""What a study's tuner leaves behind: DIR/studies/NAME.json, written in one piece when the study ends."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from controller.wire import Message, Name


class TrialRecord(Message):
    """One trial as the tuner knows it: what it trained, its metric at the end of each rung, and how it ended."""

    number: int
    configuration: str
    metrics: Annotated[tuple[float, ...], Field(strict=False)]
    state: Literal["complete", "pruned", "failed"]


class StudyRecord(Message):
    """A study that is over. ``best`` is the number of its best trial; None: no trial came to the end."""

    name: Name
    tuner: str
    trials: Annotated[tuple[TrialRecord, ...], Field(strict=False)]
    best: int | None
    best_metric: float | None


def study_file(directory: Path, study: str) -> Path:
    """Where the record of a study is."""
    return directory / "studies" / f"{study}.json"


def read_study(path: Path) -> StudyRecord:
    """A study's record. Raises OSError, and ValueError with the file's name if it is not one."""
    try:
        return StudyRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path}: not a study's record: {error}") from error
