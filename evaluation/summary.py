"""The fields that every ``summary.json`` has: command, commit, machine, seeds, and the claims for the docs."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from topologies import checkout


def head(command: str, datapath: str, seeds: Sequence[int], headline: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the common fields of a summary. ``datapath`` is that of the testbed, or "none"."""
    return {
        "command": command,
        "commit": checkout.commit(),
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "datapath": datapath},
        "seeds": list(seeds),
        "headline": [dict(entry) for entry in headline],
    }


def claim(
    claim: str,
    *,
    metric: str,
    unit: str,
    baseline: float | None,
    value: float | None,
    interval: tuple[float | None, float | None],
) -> dict[str, Any]:
    """Return one entry of the headline. ``interval`` is of the reduction, 1 - value / baseline; None: not known."""
    return {
        "claim": claim,
        "metric": metric,
        "unit": unit,
        "baseline": baseline,
        "value": value,
        "reduction": 1.0 - value / baseline if baseline and value is not None else None,
        "ci95": list(interval),
    }


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a summary in one piece. NaN becomes null, because JSON has no NaN. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(_plain(document), indent=1, allow_nan=False) + "\n")
    scratch.replace(path)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
