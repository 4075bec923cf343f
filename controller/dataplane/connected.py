"""What all connections of switches have in common, whether the controller changes the switch or only looks at it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.channel import Channel, SwitchGoneError
from controller.dataplane.peers.log import PeerLog
from controller.dataplane.queues.ports import Ports
from controller.dataplane.values import Settings
from controller.model import Switch
from controller.rules.fabric import inner_ports

LOG = logging.getLogger(__name__)


class ConnectedSwitch:
    """One connection of one switch. ``changed`` is called with news; ``log`` gets what people should know."""

    _ports: Ports

    def __init__(self, datapath: Any, settings: Settings, *, changed: Callable[[str], None], log: PeerLog) -> None:
        self.dpid: int = datapath.id
        self.address = str(datapath.address[0])
        self.ready = False
        """Whether plans are made for it."""
        self._settings = settings
        self._datapath = datapath
        self._channel = Channel(datapath, answer_seconds=settings.answer_seconds, queue_numbers=settings.queue_numbers)
        self._changed = changed
        self._log = log
        self._news = hub.Event()

    def switch(self) -> Switch:
        """Returns this switch as the planner sees it."""
        inner = inner_ports(self._settings.links, self.dpid)
        distrusted = {port for dpid, port in self._settings.untrusted if dpid == self.dpid}
        return Switch(self.dpid, inner, self._ports.numbers - distrusted - inner if distrusted else None)

    def answers(self) -> bool:
        """Returns whether the switch answers an echo on this connection. Raises nothing."""
        try:
            self._channel.ask(parser.OFPEchoRequest(self._datapath, b""))
        except SwitchGoneError:
            return False
        return True

    def received(self) -> Mapping[int, int]:
        """Returns the bytes that each port has received; nothing where that is not known. Raises nothing."""
        try:
            return self._ports.received()
        except SwitchGoneError as error:
            LOG.debug("what switch %016x has received is not known: %s", self.dpid, error)
            return {}

    def is_of(self, datapath: Any) -> bool:
        """Returns whether this is that connection's switch."""
        return datapath is self._datapath

    def deliver(self, message: Any) -> None:
        """Receive a message from the switch."""
        self._channel.deliver(message)

    def ports_changed(self) -> None:
        """A port came, went or changed."""
        self._news.set()
