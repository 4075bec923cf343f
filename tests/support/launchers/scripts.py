"""The scripts that hand a job its DSCP, with a folder and a longest wait of the tests' own."""

from __future__ import annotations

from pathlib import Path

from tests.support.paths import ROOT

WITH_ENVIRONMENT = ROOT / "deploy" / "launch" / "with-environment"
TASK_PROLOG = ROOT / "deploy" / "slurm" / "task-prolog"
FOLDER = "folder=/run/trainyard/environment\n"
SECONDS = "seconds=10\n"
"""What an operator changes who keeps the files elsewhere, or wants a task to wait longer."""


def copy(shipped: Path, to: Path, folder: Path, seconds: int = 10) -> Path:
    """Copy a script into the folder ``to``. Returns its path."""
    text = shipped.read_text()
    assert text.count(FOLDER) == text.count(SECONDS) == 1
    script = to / shipped.name
    script.write_text(text.replace(FOLDER, f"folder={folder}\n").replace(SECONDS, f"seconds={seconds}\n"))
    script.chmod(0o755)
    return script
