"""The environment of a program: made once from its pinned requirements, in a folder that git ignores."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from evaluation.logs.errors import RecordingError
from topologies import checkout

FOLDER = checkout.ROOT / ".venv-logs"
REQUIREMENTS = checkout.ROOT / "requirements" / "logs"
STAMP = "requirements.sha256"


def make(program: str) -> Path:
    """Returns the folder of a program's environment, made where it is missing or older than its requirements.

    Raises RecordingError if there are no requirements, or if they cannot be installed.
    """
    requirements = REQUIREMENTS / f"{program}.txt"
    if not requirements.is_file():
        raise RecordingError(f"{requirements.relative_to(checkout.ROOT)} is missing: it pins what {program} needs")
    folder = FOLDER / program
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    stamp = folder / STAMP
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        _install(folder, requirements)
        stamp.write_text(wanted, encoding="utf-8")
    return folder


def _install(folder: Path, requirements: Path) -> None:
    python = str(folder / "bin" / "python")
    uv = str(Path(sys.executable).parent / "uv")
    _call([uv, "venv", "--clear", "--quiet", str(folder)])
    # By pip: uv takes the build for CUDA, which is larger by gigabytes. What torch itself needs is pinned, too.
    for line in requirements.read_text(encoding="utf-8").splitlines():
        if line.startswith("torch=="):
            _call([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", line])
    # Some programs ship as source alone, and are built with the setuptools that is pinned here.
    _call([uv, "pip", "install", "--quiet", "--python", python, "--no-deps", "-r", str(requirements)])


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise RecordingError(f"{' '.join(command)} failed (exit status {done.returncode}): {said}")
