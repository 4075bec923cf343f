"""Files that installing the controller's libraries needs: c65ryu pins an eventlet that Python 3.11 cannot import."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

Kind = Literal["override", "build"]
"""``override`` replaces c65ryu's pin of eventlet; ``build`` names a setuptools that c65ryu's set-up code works with."""

KINDS: tuple[Kind, ...] = get_args(Kind)


def path(kind: Kind) -> Path:
    """Returns the path of a file for ``uv pip install``: ``--override`` or ``--build-constraint``."""
    return Path(str(files(__name__).joinpath(f"{kind}.txt")))
