"""Where calibrations are kept: a file a device and number of threads, in the user's cache folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from controller.documents import text_file
from deepprophet.costs.calibration import Calibration, from_text
from deepprophet.errors import InputError, UncalibratedError

FOLDER_VARIABLE = "TRAINYARD_PROPHET"


def folder(environment: Mapping[str, str]) -> Path:
    """``$TRAINYARD_PROPHET``, or ``trainyard/prophet`` in the user's cache folder."""
    if own := environment.get(FOLDER_VARIABLE):
        return Path(own)
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "trainyard" / "prophet"


def path_of(environment: Mapping[str, str], device: str, threads: int) -> Path:
    """The file of a device."""
    name = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")[:80]
    return folder(environment) / f"{name}-{threads}-threads.json"


def read(path: Path, device: str, threads: int, options: str = "") -> Calibration:
    """The calibration at a path; ``options``: how else it is made.

    Raises UncalibratedError where there is none, InputError where it is none.
    """
    if not path.exists():
        raise UncalibratedError(
            f"this device ({device}, {threads} thread{'s' if threads > 1 else ''} a worker) is not calibrated: run "
            f"trainyard predict --calibrate --threads {threads}{options} on it, with nothing else running; it takes "
            f"some minutes, once. It was looked for at {path}; --calibration FILE takes another"
        )
    try:
        return from_text(text_file.read(path), str(path))
    except text_file.FileError as error:
        raise InputError(f"{error}; calibrate again (trainyard predict --calibrate)") from error


def write(path: Path, calibration: Calibration) -> None:
    """Write in one piece: who reads meanwhile has the old one. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    scratch.write_text(calibration.model_dump_json(indent=1) + "\n", encoding="utf-8")
    scratch.replace(path)
