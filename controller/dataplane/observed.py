"""One connected switch that is only looked at, where the settings let switches be left alone.

It is asked which ports it has, and whether it answers. Nothing is sent that changes it: no rule, no queue, no packet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ryu.lib import hub

from controller.dataplane.connected import ConnectedSwitch
from controller.dataplane.peers.log import PeerLog
from controller.dataplane.queues.ports import Ports
from controller.dataplane.values import Settings, SwitchChange, SwitchStatus
from controller.model import Switch
from controller.rules.rule import Rule

REASON = "observed only: the setting enforce does not name switches"


class ObservedSwitch(ConnectedSwitch):
    """A switch in the place of a ``Session``, with its methods. The planner sees it once its ports are known."""

    def __init__(self, datapath: Any, settings: Settings, *, changed: Callable[[str], None], log: PeerLog) -> None:
        super().__init__(datapath, settings, changed=changed, log=log)
        self._ports = Ports(self._channel, settings, database=None, counted=lambda _counters: None)
        self._thread = hub.spawn(self._look_after)

    def status(self) -> SwitchStatus:
        """Returns this switch as the operator sees it: it is not used."""
        return SwitchStatus(
            self.dpid, connected=not self._channel.closed, ready=False, reason=REASON, rules=0, bundles=None
        )

    def apply(self, _wanted: frozenset[Rule], _epoch: int) -> SwitchChange:
        """Returns that nothing was sent."""
        return SwitchChange(self.dpid)

    def change(self, settings: Settings) -> None:
        """Use other settings from now on. The planner sees what differs at the next look."""
        self._settings = settings
        self._news.set()

    def listen(self, *, is_listening: bool) -> None:
        """Do nothing: a switch without rules has no packets for the controller."""

    def renew_gate(self) -> bool:
        """Returns that no gate is open."""
        return False

    def count(self) -> None:
        """Do nothing: queues that are not the controller's say nothing of classes."""

    def rule_removed(self, _message: Any) -> None:
        """A rule went, which is none of the controller's business."""

    def close(self) -> None:
        """The connection is gone, or the controller stops."""
        self.ready = False
        self._channel.close()
        hub.kill(self._thread)

    def _look_after(self) -> None:
        known_as: Switch | None = None
        while not self._channel.closed:
            self._news.clear()
            try:
                self._ports.read()
                if self.switch() != known_as:
                    known_as, self.ready = self.switch(), True
                    self._log.say(logging.INFO, self.address, f"switch {self.dpid:016x} is observed")
                    self._changed(f"switch {self.dpid:016x} is observed")
            except Exception as error:  # whatever it is, the switch is asked again
                self._log.say(logging.WARNING, self.address, f"switch {self.dpid:016x} is not known: {error}")
            self._news.wait(self._settings.retry_seconds)
