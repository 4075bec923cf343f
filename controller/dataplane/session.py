"""One connection of one switch, from its hello to its end: made right, proven, kept right.

Two green threads look after each switch, so that a slow one holds up no other. One brings it the pipeline, makes and
proves the queues, and looks again when a port changes, when a switch that was not ready may have become so, and from
time to time. The other compares its rules with what they should be, several times a second, and at once when the
switch tells that one went; it waits for nothing that the first one does.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ryu.lib import hub

from controller.dataplane import openflow
from controller.dataplane.audit import Repairs
from controller.dataplane.channel import SwitchGoneError
from controller.dataplane.connected import ConnectedSwitch
from controller.dataplane.meters import Meters
from controller.dataplane.peers.log import PeerLog
from controller.dataplane.queues import ovsdb
from controller.dataplane.queues.numbers import queue_ids
from controller.dataplane.queues.ovsdb_select import OvsdbError
from controller.dataplane.queues.ports import Ports
from controller.dataplane.queues.probe import Counters
from controller.dataplane.rule_table import RuleTable
from controller.dataplane.values import Settings, SwitchChange, SwitchStatus
from controller.model import Switch
from controller.rules.rule import Rule

LOG = logging.getLogger(__name__)

_WHOLE_LOOKS = 3
"""Every third look at the queues is a whole one: at the database too, and at ports that could not be proven."""

_PAUSE_SECONDS = 0.02
"""Between two looks at the rules, or at the ports, however often the switch tells of changes."""


class Session(ConnectedSwitch):
    """One connected switch. ``base`` gives the rules that it needs before any plan; ``changed`` is told of news.

    ``database`` is where its queues are made (None: nobody said where). ``remembered`` is the last plan's rules that
    this switch took, where there was one. ``repairs`` notes what was put right, and ``counted`` is told the queues'
    counters whenever they are read; both outlive the connection. ``switches`` is how many the controller looks after,
    and ``is_paused`` whether its gate is to be closed.
    ``log`` takes what people should know of the switch.
    """

    def __init__(
        self,
        datapath: Any,
        settings: Settings,
        *,
        database: ovsdb.Database | None,
        base: Callable[[Switch], frozenset[Rule]],
        changed: Callable[[str], None],
        repairs: Repairs,
        counted: Callable[[Counters], None],
        log: PeerLog,
        switches: Callable[[], int],
        is_paused: Callable[[], bool],
        remembered: frozenset[Rule] | None = None,
    ) -> None:
        super().__init__(datapath, settings, changed=changed, log=log)
        self.reason: str | None = "being set up"
        self._repairs = repairs
        # Of those that it owns, none may keep it: the collector of such rings seldom runs in the controller.
        me = weakref.proxy(self)
        self._rules = RuleTable(
            self._channel,
            gate_seconds=settings.gate_seconds,
            base=lambda: base(me.switch()),
            remembered=remembered,
            switches=switches,
            is_paused=is_paused,
            prepare=lambda: me.settle_meters(),  # noqa: PLW0108 - a bound method would keep this
            warn=partial(log.say, logging.WARNING, self.address),
        )
        self._ports = Ports(
            self._channel,
            settings,
            database=database,
            counted=lambda counters: me.take_counters(counters),  # noqa: PLW0108 - a bound method would keep this
        )
        self._meters = Meters(
            self._channel,
            settings,
            rate_bps=self._ports.rate_bps,
            numbers=lambda: me.port_numbers(),  # noqa: PLW0108 - see above
            in_use=self._rules.meters,
        )
        self._counted = counted
        self._unordered: frozenset[int] = frozenset()
        self._is_traced = False
        self._is_listening: bool | None = None
        self._known_as: Switch | None = None
        self._loss = hub.Event()
        self._threads = [hub.spawn(self._look_after), hub.spawn(self._keep_rules)]

    # What the dataplane asks.

    def status(self) -> SwitchStatus:
        """This switch as the operator sees it."""
        return SwitchStatus(
            self.dpid,
            connected=not self._channel.closed,
            ready=self.ready,
            reason=self.reason,
            rules=self._rules.count,
            bundles=self._channel.bundles,
            ports=self._ports.proofs,
            problems=self._problems() if self.ready else (),
            repairs=self._repairs.count,
        )

    def _problems(self) -> tuple[str, ...]:
        changed = self._repairs.problem(time.monotonic())
        unlike = None
        if not self._rules.is_comparable:
            unlike = (
                "its rules read otherwise than they were sent; until it connects again only their number is compared"
            )
        others = (self._meters.problem, changed, unlike)
        return (*self._ports.problems(), *(text for text in others if text is not None))

    def switch(self) -> Switch:
        """Returns this switch as the planner sees it, with the meters that it has."""
        return replace(super().switch(), control_ports=self._meters.ports)

    def port_numbers(self) -> frozenset[int]:
        """Returns the numbers of its ports."""
        return self._ports.numbers

    def settle_meters(self) -> None:
        """Make the meters as they should be. Raises SwitchGoneError."""
        put_back = self._meters.settle()
        if put_back is not None:
            self._note(put_back)

    def apply(self, wanted: frozenset[Rule], epoch: int) -> SwitchChange:
        """Make the switch hold ``wanted``: only the difference is sent. Raises nothing."""
        started = time.monotonic()
        sent = 0
        errors: tuple[str, ...] = ()
        try:
            sent, errors = self._rules.apply(wanted, epoch)
        except Exception as error:  # whatever it is, the other switches' changes go on
            errors = (self._in_words(error),)
            self._fail(errors[0])
        return SwitchChange(self.dpid, sent, time.monotonic() - started, errors)

    def change(self, settings: Settings) -> None:
        """Use ``settings`` from now on, and have the ports looked at at once. Waits for nothing."""
        self._settings = settings
        self._rules.gate_seconds = settings.gate_seconds
        self._ports.change(settings)
        self._meters.settings = settings
        self._news.set()

    def renew_gate(self) -> bool:
        """Keep the gate open for another while, or closed; whether the switch did. Raises nothing."""
        try:
            problem = self._rules.keep_gate()
        except Exception as error:
            problem = self._in_words(error)
        if problem is not None and self.ready:
            self._fail(problem)
        return problem is None

    def listen(self, *, is_listening: bool) -> None:
        """Have the switch send packets for the controller for another while, or none. Raises nothing."""
        if not self.ready or is_listening is self._is_listening is False:
            return
        try:
            self._channel.tell(openflow.listen(self._datapath, is_listening=is_listening))
            self._is_listening = is_listening
        except SwitchGoneError as error:
            LOG.debug("switch %016x is not told to listen: %s", self.dpid, error)

    def count(self) -> None:
        """Have the queues' counters read. Raises nothing."""
        try:
            self._ports.counters()
        except SwitchGoneError as error:
            LOG.debug("the counters of switch %016x are not known: %s", self.dpid, error)

    def take_counters(self, counters: Counters) -> None:
        """The queues' counters have been read."""
        # Of a switch that nobody has proven, anything may call itself a counter.
        # Of its queues only those count that are ours, at ports that it has told of.
        if self.ready:
            ports, queues = self._ports.numbers, queue_ids(self._settings.classes, self._settings.queue_numbers)
            self._counted({key: each for key, each in counters.items() if key[0] in ports and key[1] in queues})

    # What the connection tells.

    def rule_removed(self, message: Any) -> None:
        """The switch tells that a rule went."""
        if openflow.is_about_our_rule(message):
            self._loss.set()

    def close(self) -> None:
        """The connection is gone, or the controller stops."""
        self.ready = False
        self.reason = "not connected"
        self._channel.close()
        for thread in self._threads:
            hub.kill(thread)
        self._threads.clear()

    # Looking after it.

    def _look_after(self) -> None:
        turn = 0
        while not self._channel.closed:
            is_whole = not self.ready or self._news.is_set() or turn % _WHOLE_LOOKS == 0
            self._news.clear()
            turn += 1
            try:
                if is_whole:
                    self._ports.read()
                    self.settle_meters()
                problem = self._rules.settle()
                if problem is None and (is_whole or not self._ports.are_as_proven()):
                    problem = self._settle_ports()
                self._set_ready(problem)
            except Exception as error:  # whatever it is, the switch is looked at again
                self._fail(self._in_words(error))
            self._news.wait(self._settings.queue_seconds if self.ready else self._settings.retry_seconds)
            # A switch that tells of its ports without end has one look for many of its messages.
            hub.sleep(_PAUSE_SECONDS)

    def _settle_ports(self) -> str | None:
        looked = self._ports.settle(anew=not self.ready)
        if looked.made_again:
            self._note(f"queues had been deleted or changed and were made again (port {', '.join(looked.made_again)})")
        unordered = self._ports.unordered()
        if looked.problem is None and unordered != self._unordered:
            for text in self._ports.problems() if unordered else ():
                self._log.say(logging.WARNING, self.address, f"switch {self.dpid:016x}: {text}")
            if not unordered:
                self._log.say(logging.INFO, self.address, f"switch {self.dpid:016x}: all its ports are ordered")
            self._unordered = unordered
        return looked.problem

    def _keep_rules(self) -> None:
        while not self._channel.closed:
            self._loss.wait(self._settings.audit_seconds)
            self._loss.clear()
            self._say(self._repairs.due(time.monotonic()))
            if self.ready:
                self._look_at_rules()
            hub.sleep(_PAUSE_SECONDS)

    def _look_at_rules(self) -> None:
        try:
            put_right, problem = self._rules.look()
        except Exception as error:
            put_right, problem = None, self._in_words(error)
        if put_right is not None:
            self._note(put_right)
        if problem is not None:
            self._fail(problem)

    def _note(self, repair: str) -> None:
        self._say(self._repairs.note(repair, time.monotonic()))

    def _say(self, repair: str | None) -> None:
        if repair is not None:
            text = f"switch {self.dpid:016x}: somebody else changed it: {repair}"
            self._log.say(logging.WARNING, self.address, text)

    def _set_ready(self, problem: str | None) -> None:
        if problem is not None:
            self._fail(problem)
            return
        if not self._rules.is_known and not self.ready:
            # The other thread has found them wrong meanwhile.
            self._news.set()
            return
        switch = self.switch()
        if not self.ready or switch != self._known_as:
            # Without its gate a switch would hold all rules and follow none.
            refusal = self._rules.keep_gate()
            if refusal is not None:
                self._fail(refusal)
                return
            was_ready = self.ready
            self._known_as, self.ready, self.reason = switch, True, None
            news = "has other inner, trusted or control ports" if was_ready else "is ready"
            unproven = "" if was_ready or self._settings.probe else ", its queues not proven"
            self._log.say(logging.INFO, self.address, f"switch {self.dpid:016x} {news}{unproven}")
            self._changed(f"switch {self.dpid:016x} {news}")

    def _fail(self, reason: str) -> None:
        was, self.ready = self.ready, False
        if reason != self.reason and not self._channel.closed:
            self._log.say(logging.WARNING, self.address, f"switch {self.dpid:016x} is not ready: {reason}")
        self.reason = reason
        if was:
            # What it holds may not be known any more; it is read, and all is proven again, at once.
            self._rules.forget()
            self._news.set()
            self._changed(f"switch {self.dpid:016x}: {reason}")

    def _in_words(self, error: Exception) -> str:
        """A fault in one line; one that nobody foresaw with its name. The log gets the trace of a session's first."""
        if isinstance(error, SwitchGoneError | OvsdbError):
            return str(error)
        text = f"{type(error).__name__}: {error}"
        if not self._is_traced:
            self._is_traced = True
            self._log.say(
                logging.ERROR, self.address, f"switch {self.dpid:016x} could not be looked after", error=error
            )
        return text
