"""The prolog and epilog that ship, installed for a Slurm of the tests: the folder in them is the tests' own."""

from __future__ import annotations

from pathlib import Path

from tests.support.paths import ROOT

SHIPPED = ROOT / "deploy" / "slurm"
SCRIPTS = {"prolog": "Prolog", "task-prolog": "TaskProlog", "epilog": "Epilog"}
FOLDER = "/run/trainyard/progress"
"""What an operator changes who keeps progress files elsewhere."""


def install(folder: Path) -> list[str]:
    """Copy the scripts into a folder, for the progress folder ``progress`` in it. Returns the lines for slurm.conf."""
    return [f"{option}={copy(name, folder, folder / 'progress')}" for name, option in SCRIPTS.items()]


def copy(name: str, folder: Path, progress: Path) -> Path:
    """Copy one script. Returns its path."""
    text = (SHIPPED / name).read_text()
    assert FOLDER in text
    script = folder / name
    script.write_text(text.replace(FOLDER, str(progress)))
    script.chmod(0o755)
    return script
