"""The Python interpreter of the environment that has the training frameworks and the tuner."""

from __future__ import annotations

import os
from pathlib import Path

from topologies import checkout
from topologies.errors import LabError

PYTHON = checkout.ROOT / ".venv-frameworks" / "bin" / "python"
PYTHON_SETTING = "TRAINYARD_TORCH_PYTHON"
"""This environment variable names another interpreter that has PyTorch, scikit-learn and Optuna."""


def interpreter(what: str) -> str:
    """Return the interpreter that can import ``what``. Raises LabError."""
    python = Path(os.environ.get(PYTHON_SETTING) or PYTHON)
    if not python.exists():
        raise LabError(f"there is no {python}: {what} is not installed; scripts/setup --frameworks installs it")
    return str(python)
