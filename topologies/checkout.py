"""The checkout that this code runs from: its folder and its commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

from topologies import tools

ROOT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """Return the commit of this checkout, with "+" where files differ from it; "unknown" outside a checkout."""
    try:
        description = tools.run(
            ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"], timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return description.stdout.strip()
