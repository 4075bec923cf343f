"""``scripts/evaluate jpas`` as tests call it, and the summary that it leaves."""

from __future__ import annotations

import json
from pathlib import Path

from evaluation import evaluate


def run(folder: Path, *arguments: str) -> int:
    return evaluate.main(["jpas", "--datapath", "uml", "--boxes", "2", "--results", str(folder), *arguments])


def read(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text())
