"""Golden outputs: what ``trainyard sim`` must keep saying of small scenarios.

Every ``NAME.json`` beside this file holds a scenario: ``command`` (a trace is named relative to the folder) and
``result``, the JSON document without the runs' own times and with numbers of nine digits, so that another processor's
last bits are no difference. ``python -m tests.golden`` runs every command again and writes what it says; look at the
difference before you keep it. A new scenario is a file with a ``command`` alone.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from controller.cli.main import main

FOLDER = Path(__file__).resolve().parent
DIGITS = 9


def scenarios() -> list[Path]:
    """All scenarios, by name."""
    return sorted(FOLDER.glob("*.json"))


def normalised(value: Any) -> Any:
    """A document without the runs' own times, its numbers rounded."""
    if isinstance(value, dict):
        return {key: normalised(inner) for key, inner in value.items() if key not in ("wall_seconds", "cpu_seconds")}
    if isinstance(value, list):
        return [normalised(inner) for inner in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def run(command: list[str]) -> dict[str, Any]:
    """What a command says, normalised. Raises RuntimeError where it fails."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(FOLDER), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*command, "--json", "--processes", "1"])
    if status != 0:
        raise RuntimeError(f"{command}: exit status {status}: {err.getvalue()}")
    result = normalised(json.loads(out.getvalue()))
    assert isinstance(result, dict)
    return result


def text(command: list[str], result: dict[str, Any]) -> str:
    """The bytes of a scenario's file."""
    return json.dumps({"command": command, "result": result}, indent=1) + "\n"
