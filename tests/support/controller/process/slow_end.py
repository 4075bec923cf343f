"""A Ryu app beside the controller whose end takes a while: Ryu ends its apps one after the other, and ours not last."""

from __future__ import annotations

from ryu.base.app_manager import RyuApp
from ryu.lib import hub

SECONDS = 0.8


class SlowEnd(RyuApp):
    """An app that somebody else has written."""

    def close(self) -> None:
        """Take a while; other green threads go on meanwhile."""
        hub.sleep(SECONDS)
