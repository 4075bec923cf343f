"""The parts of the controller that the handlers use."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from controller.access.audit.log import AuditLog
from controller.access.callers import Callers
from controller.api.bodies.workers import Workers
from controller.api.live.feed import Feed
from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.events.history import History
from controller.events.ring import Ring, first_id
from controller.journal.store import Store
from controller.journal.writer import Journal
from controller.loop.host_changes import HostChanges
from controller.loop.loop import Loop
from controller.loop.metrics import Metrics
from controller.loop.network import Network
from controller.registry.registry import Registry
from controller.reload.reloader import Reloader
from controller.steps import Turns


@dataclass
class Services:
    """The parts of a running controller. A reload replaces ``callers``; all else stays."""

    current: CurrentSettings
    registry: Registry
    dataplane: Network
    loop: Loop
    store: Store
    journal: Journal
    metrics: Metrics
    callers: Callers
    hosts: HostChanges
    certificate_problems: Callable[[], Sequence[str]] = tuple
    """Returns what is wrong with the controller's certificates."""
    certificate_ends: Callable[[], Mapping[tuple[str, str], float]] = dict
    """Returns when the controller's certificates expire, by use and kind, in seconds since the Unix epoch."""
    workers: Workers = field(default_factory=Workers)
    audit: AuditLog = field(default_factory=AuditLog.in_memory)
    feed: Feed = field(init=False)
    """The events, and the streams that follow them."""
    history: History = field(default_factory=History)
    """The last hour in numbers."""
    reporting: Turns = field(default_factory=Turns)
    """Lets the reports of a host be merged one after the other."""
    reloader: Reloader | None = None
    """Puts a changed settings file in force."""

    def __post_init__(self) -> None:
        self.feed = Feed(Ring(first_id(time.time())))

    @property
    def config(self) -> Config:
        """The settings in force."""
        return self.current.config
