"""A Ryu app that runs beside the controller's: it sends each switch one echo request after the other.

It runs in the controller's process, so its messages take the controller's way to the switch and back. Beside the
controller's settings it writes two files of float64, by the clock that all processes share (``time.monotonic``):

- ``connections``: when a switch connected;
- ``echoes``: for each request a pair, when the request was sent and when the answer came. NaN: no answer came.
"""

from __future__ import annotations

import math
import os
import struct
import time
from pathlib import Path
from typing import Any, ClassVar

from ryu.base.app_manager import RyuApp
from ryu.controller import ofp_event
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3

CONNECTIONS, ECHOES = "connections", "echoes"
"""The names of the files."""
PAUSE_SECONDS = 0.002
ANSWER_SECONDS = 5.0
_NUMBER = struct.Struct("!Q")
_MOMENT, _PAIR = struct.Struct("=d"), struct.Struct("=dd")


class EchoStream(RyuApp):
    """Begins when a switch connects, and ends at the first request without an answer."""

    OFP_VERSIONS: ClassVar[list[int]] = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connections, self._echoes = (
            Path(os.environ["TRAINYARD_CONFIG"]).with_name(name).open("wb", buffering=0)
            for name in (CONNECTIONS, ECHOES)
        )
        self._answers: dict[tuple[int, int], hub.Event] = {}

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
    def connected(self, event: Any) -> None:
        """Begin the stream of a switch."""
        self._connections.write(_MOMENT.pack(time.monotonic()))
        hub.spawn(self._run, event.datapath)

    @set_ev_cls(ofp_event.EventOFPEchoReply, MAIN_DISPATCHER)
    def answered(self, event: Any) -> None:
        """Note an answer; the controller's own echoes have no number."""
        if len(event.msg.data) == _NUMBER.size:
            waiting = self._answers.pop((event.msg.datapath.id, *_NUMBER.unpack(event.msg.data)), None)
            if waiting is not None:
                waiting.set()

    def _run(self, datapath: Any) -> None:
        number = 0
        came = 0.0
        while not math.isnan(came):
            number += 1
            answer = self._answers[datapath.id, number] = hub.Event()
            sent = time.monotonic()
            datapath.send_msg(datapath.ofproto_parser.OFPEchoRequest(datapath, _NUMBER.pack(number)))
            came = time.monotonic() if answer.wait(ANSWER_SECONDS) else math.nan
            self._echoes.write(_PAIR.pack(sent, came))
            hub.sleep(PAUSE_SECONDS)
