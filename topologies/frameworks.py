"""The interpreter of what needs a training framework or a tuner: they live in an environment of their own."""

from __future__ import annotations

import os
from pathlib import Path

from topologies import checkout
from topologies.errors import LabError

PYTHON = checkout.ROOT / ".venv-frameworks" / "bin" / "python"
PYTHON_SETTING = "TRAINYARD_TORCH_PYTHON"
"""Names another interpreter that has PyTorch, scikit-learn and Optuna."""


def interpreter(what: str) -> str:
    """Where ``what`` can be imported. Raises LabError."""
    found = Path(os.environ.get(PYTHON_SETTING) or PYTHON)
    if not found.exists():
        raise LabError(f"there is no {found}: {what} is not installed; scripts/setup --frameworks does it")
    return str(found)
