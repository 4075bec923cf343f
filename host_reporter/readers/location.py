"""Where the progress of a job is read, and with which care. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["log", "cri", "docker-json", "csv", "jsonl", "trainer-state", "tensorboard", "mlflow"]
"""What is at a location."""


@dataclass(frozen=True)
class Location:
    """A file or folder. ``path`` is what is opened, ``shown`` its name in messages.

    ``kind`` of None: name and content tell it. ``follow_links``: the last part of the path may be a link, as that of a
    descriptor (``/proc/PID/fd/N``) is. ``owner``: the number of the user that must own it; None: anyone.
    """

    path: Path
    shown: str
    kind: Kind | None = None
    follow_links: bool = True
    owner: int | None = None
