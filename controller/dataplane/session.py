"""One connection of one switch, from its hello to its end: made right, proven, kept right.

A green thread of its own looks after each switch, so that a slow one holds up no other: it reads the rules that the
switch holds, brings it the pipeline, makes and proves the queues, and looks again when a port changes, when a switch
that was not ready may have become so, and from time to time whether somebody else deleted rules.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane import openflow, ovsdb, probe, transactions
from controller.dataplane.channel import Channel, SwitchGoneError
from controller.dataplane.queues import PortQueues, port_queues, queue_ids
from controller.dataplane.values import PortProof, Settings, SwitchChange, SwitchStatus
from controller.fabric import inner_ports
from controller.model import Switch
from controller.rules import Difference, Rule, difference

LOG = logging.getLogger(__name__)

_DEFAULT_RATE_BPS = 1e9
_KBPS = 1e3


class Session:
    """One connected switch. ``base`` gives the rules that it needs before any plan; ``changed`` is told of news.

    ``database`` is where its queues are made (None: nobody said where).
    ``remembered`` is what the last plan wanted this switch to hold, where there was one.
    """

    def __init__(
        self,
        datapath: Any,
        settings: Settings,
        *,
        database: ovsdb.Database | None,
        base: Callable[[Switch], frozenset[Rule]],
        changed: Callable[[str], None],
        remembered: frozenset[Rule] | None = None,
    ) -> None:
        self.dpid: int = datapath.id
        self.address = str(datapath.address[0])
        self.ready = False
        self.reason: str | None = "being set up"
        self._settings = settings
        self._datapath = datapath
        self._channel = Channel(datapath, answer_seconds=settings.answer_seconds)
        self._database = database
        self._base = base
        self._changed = changed
        self._wanted = remembered
        self._held: frozenset[Rule] | None = None
        self._tags: Mapping[openflow.Place, int] = {}
        self._epoch = 0
        self._proofs: tuple[PortProof, ...] = ()
        self._ports: dict[int, Any] = {}
        self._known_as: Switch | None = None
        self._rules_lock = hub.Semaphore(1)
        self._news = hub.Event()
        self._thread = hub.spawn(self._look_after)

    # What the dataplane asks.

    def switch(self) -> Switch:
        """This switch as the planner sees it."""
        inner = inner_ports(self._settings.links, self.dpid)
        distrusted = {port for dpid, port in self._settings.untrusted if dpid == self.dpid}
        trusted = None
        if distrusted:
            trusted = frozenset(self._ports) - distrusted - inner
        return Switch(self.dpid, inner, trusted)

    def status(self) -> SwitchStatus:
        """This switch as the operator sees it."""
        held = len(self._held) if self._held is not None else 0
        return SwitchStatus(
            self.dpid,
            connected=not self._channel.closed,
            ready=self.ready,
            reason=self.reason,
            rules=held,
            bundles=self._channel.bundles,
            ports=self._proofs,
        )

    def apply(self, wanted: frozenset[Rule], epoch: int) -> SwitchChange:
        """Make the switch hold ``wanted``: only the difference is sent. Raises nothing."""
        started = time.monotonic()
        sent = 0
        errors: tuple[str, ...] = ()
        try:
            with self._rules_lock:
                self._wanted, self._epoch = wanted, epoch
                sent, errors = self._become(wanted)
        except Exception as error:  # whatever it is, the other switches' changes go on
            errors = (self._in_words(error),)
            self._fail(errors[0])
        return SwitchChange(self.dpid, sent, time.monotonic() - started, errors)

    def renew_gate(self) -> bool:
        """Keep the gate open for another while; whether the switch did. Raises nothing."""
        try:
            problem = self._open_gate()
        except Exception as error:
            problem = self._in_words(error)
        if problem is not None:
            self._fail(problem)
        return problem is None

    def counters(self) -> probe.Counters:
        """Packets and bytes of every queue; empty where the switch does not answer."""
        try:
            return probe.read_counters(self._channel)
        except SwitchGoneError:
            return {}

    def answers(self) -> bool:
        """Whether the switch answers an echo on this connection. Raises nothing."""
        try:
            self._channel.ask(parser.OFPEchoRequest(self._datapath, b""))
        except SwitchGoneError:
            return False
        return True

    # What the connection tells.

    def is_of(self, datapath: Any) -> bool:
        """Whether this is the session of that connection."""
        return datapath is self._datapath

    def deliver(self, message: Any) -> None:
        """A message from the switch."""
        self._channel.deliver(message)

    def ports_changed(self) -> None:
        """A port came, went or changed."""
        self._news.set()

    def close(self) -> None:
        """The connection is gone, or the controller stops."""
        self.ready = False
        self.reason = "not connected"
        self._channel.close()
        hub.kill(self._thread)

    # Looking after it.

    def _look_after(self) -> None:
        proven: object = None
        while not self._channel.closed:
            self._news.clear()
            try:
                self._ports = self._read_ports()
                problem = self._settle_rules()
                if problem is None and not (self.ready and self._links() == proven and self._has_queues()):
                    proven = self._links()
                    problem = self._problem_of_queues()
                self._set_ready(problem)
            except Exception as error:  # whatever it is, the switch is looked at again
                self._fail(self._in_words(error))
            self._news.wait(self._settings.audit_seconds if self.ready else self._settings.retry_seconds)

    def _set_ready(self, problem: str | None) -> None:
        if problem is not None:
            self._fail(problem)
            return
        switch = self.switch()
        if not self.ready or switch != self._known_as:
            # Without its gate a switch would hold all rules and follow none.
            refusal = self._open_gate()
            if refusal is not None:
                self._fail(refusal)
                return
            self._known_as, self.ready, self.reason = switch, True, None
            LOG.info("switch %016x is ready%s", self.dpid, "" if self._settings.probe else ", its queues not proven")
            self._changed(f"switch {self.dpid:016x} is ready")

    def _fail(self, reason: str) -> None:
        was, self.ready = self.ready, False
        if reason != self.reason and not self._channel.closed:
            LOG.warning("switch %016x is not ready: %s", self.dpid, reason)
        self.reason = reason
        if was:
            # What it holds may not be known any more; it is read, and all is proven again, at once.
            self._held = None
            self._news.set()
            self._changed(f"switch {self.dpid:016x}: {reason}")

    def _open_gate(self) -> str | None:
        """Open the gate, or keep it open; why the switch refused."""
        refusals = self._channel.settle([openflow.gate(self._datapath, self._settings.gate_seconds)])
        return f"it refused the gate: {refusals[0].reason}" if refusals else None

    def _in_words(self, error: Exception) -> str:
        """A fault in one line; one that nobody foresaw with its name, and once with its trace in the log."""
        if isinstance(error, SwitchGoneError | ovsdb.OvsdbError):
            return str(error)
        text = f"{type(error).__name__}: {error}"
        if text != self.reason:
            LOG.error("switch %016x could not be looked after", self.dpid, exc_info=error)
        return text

    def _settle_rules(self) -> str | None:
        """Read what the switch holds where that is not known, and bring it at least the pipeline; what it refused."""
        with self._rules_lock:
            if self._held is not None and self._count() != len(self._held):
                LOG.warning("switch %016x: somebody else changed its rules; reading them", self.dpid)
                self._held = None
            if self._held is not None:
                return None
            # Without a plan nothing is deleted: after the controller's restart the plan may want just these rules.
            wanted = self._base(self.switch()) if self._wanted is None else self._wanted
            _, errors = self._become(wanted, keep=self._wanted is None)
        return "; ".join(errors) or None

    def _become(self, wanted: frozenset[Rule], *, keep: bool = False) -> tuple[int, tuple[str, ...]]:
        """Send the difference; the messages sent and what was refused. Call with the lock held."""
        if self._held is None:
            self._held = self._read()
        before = openflow.label(self._held, self._tags, wanted)
        change = difference(before, wanted)
        if keep:
            change = Difference(change.add, frozenset())
        # Until the switch has answered, what it holds is unknown: a timeout leaves it so, and it is read again.
        self._held = None
        outcome = transactions.change(self._channel, change, before, self._epoch)
        if outcome.done:
            if keep:
                places = {rule.key for rule in change.add}
                self._held = frozenset(rule for rule in before if rule.key not in places) | change.add
            else:
                # What has no name now is not wanted, and gone.
                self._held, self._tags = wanted, {}
            return outcome.sent, ()
        # What a refusing switch holds is believed only after reading it.
        self._held = openflow.label(self._read(), self._tags, before)
        repair = difference(self._held, before)
        if repair:
            LOG.warning("switch %016x did not undo a refused change; restoring its rules", self.dpid)
            if transactions.change(self._channel, repair, self._held, self._epoch).done:
                self._held = before
            else:
                self._held = None
        return outcome.sent, outcome.errors

    def _read(self) -> frozenset[Rule]:
        """The rules of ours that the switch really holds; those that no version of ours makes are deleted."""
        replies, refusals = self._channel.ask(openflow.read_request(self._datapath))
        if refusals:
            raise SwitchGoneError(f"switch {self.dpid:016x} does not tell its rules: {refusals[0].reason}")
        found = openflow.read_rules(self.dpid, replies)
        strange = [openflow.delete_held(self._datapath, item) for item in found if item.rule is None]
        if strange:
            self._channel.settle(strange)
        self._tags = {item.rule.key: item.tag for item in found if item.rule is not None and item.tag}
        return frozenset(item.rule for item in found if item.rule is not None)

    def _count(self) -> int:
        """How many rules of ours the switch holds."""
        replies, refusals = self._channel.ask(openflow.count_request(self._datapath))
        if refusals:
            return len(self._held or ())
        return sum(reply.body.flow_count for reply in replies)

    # Queues.

    def _read_ports(self) -> dict[int, Any]:
        """The switch's own ports, without its local one."""
        replies, _ = self._channel.ask(parser.OFPPortDescStatsRequest(self._datapath, 0))
        return {port.port_no: port for reply in replies for port in reply.body if port.port_no <= ofp.OFPP_MAX}

    def _live_ports(self) -> list[probe.ProbedPort]:
        """The ports that are up: only they can be proven."""
        return [
            probe.ProbedPort(number, port.name.decode(errors="replace").rstrip("\0"))
            for number, port in sorted(self._ports.items())
            if not port.state & ofp.OFPPS_LINK_DOWN and not port.config & ofp.OFPPC_PORT_DOWN
        ]

    def _links(self) -> object:
        """What the proof holds for: the ports that are up, and their rates."""
        return [(port, self._rate_bps(port.number)) for port in self._live_ports()]

    def _has_queues(self) -> bool:
        """Whether every queue that was proven is still there."""
        if not self._settings.probe:
            return True
        ids = queue_ids(self._settings.classes)
        counters = probe.read_counters(self._channel)
        return all((port.number, queue) in counters for port in self._live_ports() for queue in ids)

    def _rate_bps(self, number: int) -> float:
        configured = self._settings.rates_bps.get((self.dpid, number))
        if configured is not None:
            return configured
        port = self._ports.get(number)
        return float(port.curr_speed * _KBPS) if port is not None and port.curr_speed else _DEFAULT_RATE_BPS

    def _problem_of_queues(self) -> str | None:
        """Make the queues where they are managed, and prove them; why the switch cannot be called ready."""
        if self._settings.queues == "managed":
            problem = self._problem_of_database()
            if problem is not None:
                return problem
        if not self._settings.probe:
            return None
        ports = self._live_ports()
        if not ports:
            return "it has no port that is up"
        self._proofs = probe.prove(self._channel, ports, self._settings.classes)
        problems = [proof.problem for proof in self._proofs if proof.problem is not None]
        return "; ".join(problems[:3]) + ("; ..." if len(problems) > 3 else "") if problems else None

    def _problem_of_database(self) -> str | None:
        if self._database is None:
            return f"ovsdb has no address for switch {self.dpid:#x}; add it, or set queues: existing"
        with self._database.lock:
            return self._make_queues(self._database)

    def _make_queues(self, database: ovsdb.Database) -> str | None:
        state = database.read()
        ports = ovsdb.bridge_ports(state, self.dpid)
        if ports is None:
            return (
                f"no bridge in {database.address} has this datapath id; set ovsdb (an address, or one for each "
                "switch), or queues: existing"
            )
        wanted = {port: self._queues(port.number) for port in ports}
        missing, complaints = ovsdb.missing_queues(state, wanted)
        if missing:
            database.run(*ovsdb.make_queues(self.dpid, missing))
            state = database.read()
        if garbage := ovsdb.collect_garbage(state):
            database.run("--no-wait", *garbage)
        return "; ".join(complaints) or None

    def _queues(self, number: int) -> PortQueues:
        return port_queues(
            self._rate_bps(number),
            classes=self._settings.classes,
            job_floor=self._settings.job_floor,
            other_floor=self._settings.other_floor,
        )
