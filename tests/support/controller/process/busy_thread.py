"""A Ryu app beside the controller that keeps one of eventlet's threads busy for long, as a plan of many jobs does."""

from __future__ import annotations

from typing import Any

import eventlet.patcher
import eventlet.tpool
from ryu.base.app_manager import RyuApp
from ryu.lib import hub

SECONDS = 60.0


class BusyThread(RyuApp):
    """An app that somebody else has written."""

    def start(self) -> Any:
        """Begin what takes long."""
        super().start()
        hub.spawn(eventlet.tpool.execute, eventlet.patcher.original("time").sleep, SECONDS)
