"""Where a job's output is, whoever said so: a job file, or a launcher."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["log", "cri", "docker-json", "csv", "jsonl", "trainer-state", "tensorboard", "mlflow"]
"""What kind of file it is."""


@dataclass(frozen=True)
class Location:
    """A file or folder with a job's output.

    ``path`` is what is opened, such as /proc/PID/fd/1; it must be an ordinary file, or a folder. ``shown`` is its name
    in messages. ``kind`` of None is told by the name and the content. ``owner`` is the number of the user to whom the
    file must belong; None: to anyone. ``or_public``: or everybody may read the file.
    ``ranks_in_brackets``: a launcher puts a rank before each of its lines, as in ``[0] step 5``.
    """

    path: Path
    shown: str
    kind: Kind | None = None
    follow_links: bool = True
    owner: int | None = None
    or_public: bool = False
    ranks_in_brackets: bool = False
