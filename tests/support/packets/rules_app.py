"""A Ryu app with nothing but a dataplane, which installs the rules of the table of packets at each switch.

Started by the tests with ``ryu-manager``; ``RULES_FILE`` in the environment names the file that it writes when all
rules are in force: what the switches have refused, as JSON.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ryu.base.app_manager import RyuApp
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3

from controller.dataplane.plane import Dataplane
from controller.dataplane.values import Settings
from controller.model import Switch
from controller.rules.compiler import compile_rules
from controller.rules.rule import Rule
from tests.support.packets.world import (
    CLASSES,
    CONTROL_PORT,
    DPIDS,
    POINTS,
    UNTRUSTED_PORT,
    has_own_dscps,
    mode_of,
    snapshot,
)

GATE_SECONDS, ANSWER_SECONDS = 300, 20.0
"""The tests do not wait for a gate, and a machine may do other work, too."""


def rules_of(switch: Switch, classes: dict[str, int]) -> frozenset[Rule]:
    """Returns the rules of one switch; its datapath id says which combination it is for."""
    combination = next(name for name, dpid in DPIDS.items() if dpid == switch.dpid)
    known = snapshot((switch,), hosts_mark=combination.startswith("both"), own=has_own_dscps(combination))
    return compile_rules(known, classes, mode=mode_of(combination), forwarding="normal")


class RulesApp(RyuApp):
    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def start(self):
        super().start()
        untrusted = frozenset((dpid, UNTRUSTED_PORT) for dpid in DPIDS.values())
        settings = Settings(
            code_points=POINTS,
            queues="existing",
            probe=False,
            untrusted=untrusted,
            control_ports=frozenset((dpid, CONTROL_PORT) for dpid in DPIDS.values()),
            gate_seconds=GATE_SECONDS,
            answer_seconds=ANSWER_SECONDS,
        )
        self.plane = Dataplane(settings, lambda switch: rules_of(switch, {}))
        hub.spawn(self.install)
        return hub.spawn(self.renew)

    def install(self):
        while len(self.plane.switches()) < len(DPIDS):
            hub.sleep(0.02)
        rules = [rules_of(switch, CLASSES) for switch in self.plane.switches()]
        applied = self.plane.apply(frozenset().union(*rules))
        Path(os.environ["RULES_FILE"]).write_text(json.dumps(applied.errors))

    def renew(self):
        while True:
            self.plane.renew_gates()
            hub.sleep(0.5)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_changed(self, event):
        if event.state == MAIN_DISPATCHER:
            self.plane.connected(event.datapath)
        elif event.datapath.id is not None:
            self.plane.disconnected(event.datapath)

    @set_ev_cls(
        [
            ofp_event.EventOFPBarrierReply,
            ofp_event.EventOFPEchoReply,
            ofp_event.EventOFPErrorMsg,
            ofp_event.EventOFPFlowRemoved,
            ofp_event.EventOFPFlowStatsReply,
            ofp_event.EventOFPMeterConfigStatsReply,
            ofp_event.EventOFPAggregateStatsReply,
            ofp_event.EventOFPQueueStatsReply,
            ofp_event.EventOFPPortStatsReply,
            ofp_event.EventOFPPortDescStatsReply,
            ofp_event.EventONFBundleCtrlMsg,
        ],
        MAIN_DISPATCHER,
    )
    def answered(self, event):
        self.plane.deliver(event.msg)
