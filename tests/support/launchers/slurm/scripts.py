"""The prolog and epilog that ship, installed for a Slurm of the tests: the folder in them is the tests' own."""

from __future__ import annotations

from pathlib import Path

from tests.support.paths import ROOT

SHIPPED = ROOT / "deploy" / "slurm"
SCRIPTS = {"prolog": "Prolog", "task-prolog": "TaskProlog", "epilog": "Epilog"}
FOLDER = "/run/trainyard/progress"
"""What an operator changes who keeps progress files elsewhere."""
ENVIRONMENT = "/run/trainyard/environment"
"""What an operator changes who keeps the files of jobs' variables elsewhere."""
WAIT_SECONDS = 20
"""A task waits for so long at most: longer than by what ships, because the machines of tests are slow."""


def install(folder: Path) -> list[str]:
    """Copy the scripts into a folder, for the folders ``progress`` and ``environment`` in it.

    Returns the lines for slurm.conf.
    """
    return [f"{option}={copy(name, folder, folder / 'progress')}" for name, option in SCRIPTS.items()]


def copy(name: str, folder: Path, progress: Path) -> Path:
    """Copy one script; the folder of jobs' variables is beside that of progress. Returns its path."""
    text = (SHIPPED / name).read_text().replace("seconds=10\n", f"seconds={WAIT_SECONDS}\n")
    assert FOLDER in text
    script = folder / name
    script.write_text(text.replace(FOLDER, str(progress)).replace(ENVIRONMENT, str(progress.with_name("environment"))))
    script.chmod(0o755)
    return script
