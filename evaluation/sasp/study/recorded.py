"""Where the recordings of the study's arms are: in the folders of their jobs, or each in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evaluation.sasp.emulation.recording import COMPRESSED
from evaluation.sasp.study.arms import ARMS, Transport


def at_ratio(folder: Path, ratio: float) -> Path:
    """Return the folder of what was recorded where communication takes ``ratio`` times as long as computing."""
    return folder if ratio == 1.0 else folder / f"ratio-{ratio:g}"


def recordings(folder: Path | None, task: str, over: Transport) -> Mapping[str, str]:
    """The paths of all arms' recordings, by arm; none without a folder."""
    return {} if folder is None else {name: str(recording_of(folder, task, name, over)) for name in ARMS}


def recording_of(folder: Path, task: str, arm: str, over: Transport) -> Path:
    """The file or the folder of an arm's recording, over this transport if the arm can go over it."""
    transports = ARMS[arm].transports
    of_task = folder / f"{task}-{over if over in transports else transports[0]}"
    compressed = file_of(of_task, ARMS[arm].folder)
    return compressed if compressed.exists() else of_task / ARMS[arm].folder


def file_of(of_task: Path, name: str) -> Path:
    """The file of a recording that is one file, by the name of its training."""
    return of_task / f"{name}{COMPRESSED}"
