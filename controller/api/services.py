"""What the handlers work with."""

from __future__ import annotations

from dataclasses import dataclass

from controller.config import Config
from controller.journal import Journal
from controller.loop import Loop, Network
from controller.metrics import Metrics
from controller.registry import Registry
from controller.store import Store


@dataclass(frozen=True)
class Services:
    """The parts of a running controller."""

    config: Config
    registry: Registry
    dataplane: Network
    loop: Loop
    store: Store
    journal: Journal
    metrics: Metrics
