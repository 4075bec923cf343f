"""Files that ``trainyard order`` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WHOLE = """\
{"now": 0.0, "classes": 7,
 "hosts": [{"name": "h1", "ingress_bps": 1e9, "egress_bps": 1e9}, {"name": "h2"}],
 "jobs": [{"id": "a", "arrival": 0.0, "weight": 1.0, "stage": "s1",
           "demand": [{"src": "h1", "dst": "h2", "bytes": 1000000}],
           "iterations_left": 10, "compute_seconds": 0.1,
           "progress": [{"iteration": 1, "time": 0.5, "metric": 0.41}]}],
 "metric": {"name": "accuracy", "direction": "max"}}
"""


def snapshot(*jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"hosts": [{"name": f"h{i}"} for i in range(1, 5)], "jobs": list(jobs), **more}


def job(name: str, *demand: tuple[str, str, float], **more: Any) -> dict[str, Any]:
    return {"id": name, "demand": [{"src": s, "dst": d, "bytes": b} for s, d, b in demand], **more}


def write(folder: Path, document: Any) -> Path:
    path = folder / "snapshot.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path
