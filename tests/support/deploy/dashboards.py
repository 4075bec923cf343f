"""The dashboards of ``deploy/grafana``, and their expressions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

FILES = sorted((ROOT / "deploy" / "grafana").glob("*.json"))


def panels(file: Path) -> list[dict[str, Any]]:
    """The panels of a dashboard without the headings of its rows."""
    return [panel for panel in json.loads(file.read_text())["panels"] if panel["type"] != "row"]


def expressions(interval: str) -> Iterator[tuple[str, str]]:
    """Yields every expression, with its dashboard and panel, as Grafana sends it for all controllers and hosts."""
    for file in FILES:
        for panel in panels(file):
            for target in panel["targets"]:
                expression = target["expr"].replace("$__rate_interval", interval)
                for variable in ("$instance", "$host"):
                    expression = expression.replace(variable, ".*")
                yield f"{file.stem}: {panel['title']}", expression
