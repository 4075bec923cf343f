"""The configurations of switches that ``tests/data/switch_config`` keeps: each system with two settings.

``python -m tests.support.controller.switch_configs`` writes them anew.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from controller.config.config import load_config
from controller.switch_config.from_settings import static_plan
from controller.switch_config.plan import StaticPlan
from controller.switch_config.systems import SYSTEMS, configuration
from tests.support.paths import ROOT

FOLDER = ROOT / "tests/data/switch_config"
SETTINGS = ("pool-2", "dcb")
DPID = 1


def plan(settings: str, system: str, names: Mapping[int, str] | None = None) -> StaticPlan:
    """What the configuration of switch 1 says."""
    config = load_config(FOLDER / f"{settings}.yaml")
    return static_plan(config, DPID, names or {}, SYSTEMS[system].port_name)


def lines(settings: str, system: str, names: Mapping[int, str] | None = None) -> list[str]:
    """The configuration itself."""
    return list(configuration(SYSTEMS[system], plan(settings, system, names)))


def commands(settings: str, system: str) -> list[str]:
    """The configuration without comments and empty lines."""
    mark = SYSTEMS[system].mark
    return [line for line in lines(settings, system) if line and not line.startswith(mark)]


def kept(settings: str, system: str) -> Path:
    """The file with the configuration."""
    return FOLDER / f"{system}-{settings}.txt"


if __name__ == "__main__":
    for each in SETTINGS:
        for name in SYSTEMS:
            path, text = kept(each, name), "\n".join(lines(each, name)) + "\n"
            before = path.read_text() if path.exists() else None
            path.write_text(text)
            sys.stdout.write(f"{path.name}: {'as before' if text == before else 'changed'}\n")
