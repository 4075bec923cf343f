"""A Ryu app with nothing but a dataplane, driven by one line of JSON a command over loopback.

Started by the tests as ``ryu-manager tests/support/lab/dataplane_driver.py`` with ``DRIVER`` in the environment: a JSON
object with ``port`` (of the command socket), ``settings`` (of the dataplane) and ``link_bps`` (of each of ``links``, a
list of datapath id and port number).
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, replace
from functools import partial

import eventlet
from ryu.base.app_manager import RyuApp
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3

from controller.dataplane.plane import Dataplane
from controller.dataplane.values import Settings
from controller.model import Flow, Host, Job, Snapshot
from controller.rules.compiler import compile_rules
from controller.rules.rule import Match, Output, Rule, Table

ORDERS = json.loads(os.environ["DRIVER"])


def snapshot(switches, flows):
    """Jobs from ``{job: [[src, dst, dst_port], ...]}`` between hosts hN with address 10.0.0.N."""
    names = {name for of_job in flows.values() for src, dst, _ in of_job for name in (src, dst)}
    hosts = {name: Host(name, address=f"10.0.0.{name[1:]}") for name in names}
    jobs = tuple(
        Job(job, flows=tuple(Flow(job, src, dst, dst_port=port) for src, dst, port in of_job))
        for job, of_job in flows.items()
    )
    return Snapshot(now=0.0, hosts=hosts, jobs=jobs, switches=tuple(switches), has_places=False)


compile_normal = partial(compile_rules, mode="classified", forwarding="normal")


class Driver(RyuApp):
    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def start(self):
        super().start()
        self.events_seen = []
        rates = dict.fromkeys(map(tuple, ORDERS["links"]), ORDERS["link_bps"])
        self.settings = Settings(rates_bps=rates, **ORDERS["settings"])
        self.plane = Dataplane(self.settings, lambda switch: compile_normal(snapshot([switch], {}), {}))
        self.plane.subscribe(self.events_seen.append)
        self.gates = True
        hub.spawn(self.renew)
        return hub.spawn(self.serve)

    def renew(self):
        while True:
            if self.gates:
                self.plane.renew_gates()
            hub.sleep(0.5)

    def serve(self):
        server = eventlet.listen(("127.0.0.1", ORDERS["port"]))
        while True:
            connection, _ = server.accept()
            hub.spawn(self.converse, connection)

    def converse(self, connection):
        stream = connection.makefile("rw")
        for line in stream:
            order = json.loads(line)
            try:
                answer = getattr(self, "do_" + order.pop("do"))(**order)
            except Exception as error:
                answer = {"failed": repr(error)}
            stream.write(json.dumps(answer) + "\n")
            stream.flush()

    def do_status(self):
        return [asdict(status) for status in self.plane.status()]

    def do_apply(self, flows, classes, bad_port=None):
        """Apply the plan, and with it a rule that sends to ``bad_port``."""
        switches = self.plane.switches()
        rules = compile_normal(snapshot(switches, flows), classes)
        if bad_port is not None:
            rules |= {Rule(s.dpid, Table.FORWARD, 7, Match(in_port=1), (Output(bad_port),)) for s in switches}
        return asdict(self.plane.apply(rules))

    def do_change(self, rates=(), **settings):
        """Change the settings. ``rates`` is a list of datapath id, port number and bit/s; other rates stay."""
        rates_bps = {**self.settings.rates_bps, **{(dpid, port): bps for dpid, port, bps in rates}}
        self.settings = replace(self.settings, rates_bps=rates_bps, **settings)
        self.plane.change(self.settings)

    def do_latency(self, flows, count):
        """Seconds of each of ``count`` applies that move every flow to another class."""
        found = []
        for i in range(count):
            rules = compile_normal(snapshot(self.plane.switches(), flows), dict.fromkeys(flows, i % 7))
            started = time.perf_counter()
            applied = self.plane.apply(rules)
            found.append(time.perf_counter() - started)
            assert not applied.errors, applied.errors
        return found

    def do_bytes(self):
        return [[dpid, k, count] for (dpid, k), count in self.plane.class_bytes().items()]

    def do_gates(self, on):
        self.gates = on

    def do_events(self):
        return self.events_seen

    def do_bundles(self, on):
        """Have the switches taken for ones with or without bundles."""
        for session in self.plane._sessions.values():
            session._channel.bundles = on

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _state(self, ev):
        if ev.datapath.id is None:
            return
        if ev.state == MAIN_DISPATCHER:
            self.plane.connected(ev.datapath)
        else:
            self.plane.disconnected(ev.datapath)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _port(self, ev):
        self.plane.ports_changed(ev.msg.datapath)

    @set_ev_cls(
        [
            ofp_event.EventOFPBarrierReply,
            ofp_event.EventOFPEchoReply,
            ofp_event.EventOFPErrorMsg,
            ofp_event.EventOFPFlowRemoved,
            ofp_event.EventOFPFlowStatsReply,
            ofp_event.EventOFPAggregateStatsReply,
            ofp_event.EventOFPQueueStatsReply,
            ofp_event.EventOFPPortStatsReply,
            ofp_event.EventOFPPortDescStatsReply,
            ofp_event.EventONFBundleCtrlMsg,
        ],
        MAIN_DISPATCHER,
    )
    def _answer(self, ev):
        self.plane.deliver(ev.msg)
