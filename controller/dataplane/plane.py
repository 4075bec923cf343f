"""The dataplane: every switch that is connected, and the one way to make them equal to a plan."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.audit import Repairs
from controller.dataplane.peers.log import PeerLog
from controller.dataplane.queues.byte_counts import ByteCounts
from controller.dataplane.queues.ovsdb import Databases
from controller.dataplane.session import Session
from controller.dataplane.values import Applied, Settings, SwitchChange, SwitchStatus
from controller.model import Switch
from controller.rules.compiler import Rule

LOG = logging.getLogger(__name__)
MAX_LINES = 100
"""What is logged of the switches at one address in a minute, at most."""

Listener = Callable[[str], None]

_SORTED_AT_ONCE = 4096
"""Rules that are sorted by switch before others of the controller's work may go on."""


class Dataplane:
    """The switches. Its methods may wait for them, in the caller's green thread; none raises for a switch's fault.

    ``base`` gives the rules that a switch needs before there is a plan: the pipeline.
    """

    def __init__(self, settings: Settings, base: Callable[[Switch], frozenset[Rule]]) -> None:
        self._settings = settings
        self._base = base
        self._databases = Databases(settings.ovsdb)
        self._sessions: dict[int, Session] = {}
        self._rivals: dict[int, Any] = {}
        self._taken: dict[int, frozenset[Rule] | None] = {}
        self._rules: frozenset[Rule] = frozenset()
        self._by_switch: dict[int, frozenset[Rule]] = {}
        self._listeners: list[Listener] = []
        self._repairs: dict[int, Repairs] = {}
        self._bytes = ByteCounts()
        self._applying = hub.Semaphore(1)
        self._epoch = 0
        self._log = PeerLog(LOG, MAX_LINES)
        self._refusals = PeerLog(LOG)

    # For the planner and the API.

    def switches(self) -> tuple[Switch, ...]:
        """The switches that are connected and whose queues are proven, or need no proof, by datapath id."""
        return tuple(self._sessions[dpid].switch() for dpid in sorted(self._sessions) if self._sessions[dpid].ready)

    def apply(self, rules: frozenset[Rule]) -> Applied:
        """Make the ready switches hold exactly ``rules`` (beside those of others), and wait until they say so.

        Only the difference is sent, to all switches at once, to each as one transaction. A switch that ``rules`` does
        not mention was not known to the plan and is left as it is. A switch that does not answer holds up the rest
        for no longer than twice the time that an answer may take.
        """
        with self._applying:
            self._epoch += 1
            self._split(rules)
            work = {}
            for dpid, session in self._sessions.items():
                if session.ready and dpid in self._by_switch:
                    self._taken.setdefault(dpid, None)
                    work[dpid] = hub.spawn(self._change, session, self._by_switch[dpid], self._epoch)
            changes = self._wait_for(work)
        return Applied(
            flow_mods=sum(change.flow_mods for change in changes),
            errors=tuple(error for change in changes for error in change.errors),
            per_switch=changes,
        )

    def renew_gates(self) -> int:
        """Keep the gates of all ready switches open for another while; how many are. A slow one holds up no other."""
        deadline = time.monotonic() + self._settings.gate_seconds / 4
        threads = [hub.spawn(session.renew_gate) for session in self._sessions.values() if session.ready]
        return sum(_outcome(thread, deadline) is True for thread in threads)

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener`` with a sentence whenever a switch becomes ready or stops being so."""
        self._listeners.append(listener)

    def status(self) -> tuple[SwitchStatus, ...]:
        """Every switch that is connected, and every one that a plan has known."""
        gone = tuple(
            SwitchStatus(dpid, connected=False, ready=False, reason="not connected", rules=0, bundles=None)
            for dpid in self._taken.keys() - self._sessions.keys()
        )
        here = tuple(session.status() for session in self._sessions.values())
        return tuple(sorted(here + gone, key=lambda status: status.dpid))

    def class_bytes(self) -> dict[tuple[int, int | None], int]:
        """Bytes that each switch has sent by service class (None: all other traffic), summed over its ports.

        They only rise: what a switch had sent before its queues were made anew, or before it went away, still counts.
        """
        threads = [hub.spawn(session.count) for session in self._sessions.values() if session.ready]
        for thread in threads:
            thread.wait()
        return self._bytes.totals()

    # For the app: what Ryu tells of the switches.

    def connected(self, datapath: Any) -> None:
        """A switch has finished its hello.

        Nothing proves the id that it names. So where a session of that id is there already, the new connection takes
        its place only if the old one does not answer any more, as after a switch's sudden restart.
        """
        session = self._sessions.get(datapath.id)
        if session is None:
            self._begin(datapath)
        elif datapath.id in self._rivals:
            self._refuse(datapath, "another connection is just being looked at")
        else:
            self._rivals[datapath.id] = datapath
            hub.spawn(self._decide, session, datapath)

    def disconnected(self, datapath: Any) -> None:
        """A connection has ended, be it the switch's present one or one that it has left behind."""
        self._take_rival(datapath)
        session = self._sessions.get(datapath.id)
        if session is not None and session.is_of(datapath):
            was_ready = session.ready
            self._drop(datapath.id)
            self._log.say(logging.WARNING, session.address, f"switch {datapath.id:016x} has disconnected")
            if was_ready:
                self._tell(f"switch {datapath.id:016x} has disconnected")

    def deliver(self, message: Any) -> None:
        """A message from a switch."""
        session = self._sessions.get(message.datapath.id)
        if session is None or not session.is_of(message.datapath):
            return
        if isinstance(message, parser.OFPFlowRemoved):
            session.rule_removed(message)
        else:
            session.deliver(message)

    def ports_changed(self, datapath: Any) -> None:
        """A port of a switch came, went or changed."""
        session = self._sessions.get(datapath.id)
        if session is not None and session.is_of(datapath):
            session.ports_changed()

    def close(self) -> None:
        """Forget all switches. They keep their rules, and their order until the gate closes."""
        self._rivals.clear()
        for dpid in list(self._sessions):
            self._drop(dpid)

    def _begin(self, datapath: Any) -> None:
        address = str(datapath.address[0])
        self._log.say(logging.INFO, address, f"switch {datapath.id:016x} has connected from {address}")
        self._sessions[datapath.id] = Session(
            datapath,
            self._settings,
            database=self._databases.of(datapath.id),
            base=self._base,
            changed=self._tell,
            repairs=self._repairs.setdefault(datapath.id, Repairs()),
            counted=partial(self._bytes.take, datapath.id),
            log=self._log,
            switches=lambda: len(self._sessions),
            remembered=self._taken.get(datapath.id),
        )

    def _decide(self, session: Session, rival: Any) -> None:
        """Keep ``session`` if its switch answers; else begin one with ``rival``, if that is still there."""
        answers = session.answers()
        if not self._take_rival(rival):
            return
        current = self._sessions.get(rival.id)
        if current is not None and (answers or current is not session):
            self._refuse(rival, f"its session with {current.address} answers")
            return
        if current is not None:
            text = f"switch {rival.id:016x} does not answer at {current.address} any more"
            self._log.say(logging.WARNING, current.address, text)
            self._drop(rival.id)
        self._begin(rival)

    def _refuse(self, datapath: Any, reason: str) -> None:
        address = str(datapath.address[0])
        text = f"switch {datapath.id:016x}: a second connection, from {address}, is refused: {reason}"
        self._refusals.say(logging.WARNING, address, text)
        # Ryu tells of the end through the queue of events, whose only reader may be the caller: it must not wait there.
        hub.spawn(datapath.close)

    def _take_rival(self, datapath: Any) -> bool:
        """No longer look at a connection; whether it was looked at."""
        is_there: bool = self._rivals.get(datapath.id) is datapath
        if is_there:
            del self._rivals[datapath.id]
        return is_there

    def _drop(self, dpid: int) -> None:
        session = self._sessions.pop(dpid, None)
        if session is not None:
            session.close()
            if not self._repairs[dpid].count:
                # Anybody may connect with any id: of those that were nothing, nothing stays.
                del self._repairs[dpid]

    def _change(self, session: Session, wanted: frozenset[Rule], epoch: int) -> SwitchChange:
        """Change one switch. A later connection of it begins with the last rules that it is known to have taken."""
        change = session.apply(wanted, epoch)
        if not change.errors:
            self._taken[session.dpid] = wanted
        return change

    def _split(self, rules: frozenset[Rule]) -> None:
        """Sort ``rules`` by switch. Only what is new or gone is looked at: a big set costs no more than a small one."""
        gone = _by_switch(self._rules - rules)
        new = _by_switch(rules - self._rules)
        for dpid in gone.keys() | new.keys():
            left = (self._by_switch.get(dpid, frozenset()) - gone.get(dpid, set())) | new.get(dpid, set())
            if left:
                self._by_switch[dpid] = left
            else:
                del self._by_switch[dpid]
        self._rules = rules

    def _tell(self, reason: str) -> None:
        for listener in self._listeners:
            listener(reason)

    def _wait_for(self, work: dict[int, Any]) -> tuple[SwitchChange, ...]:
        deadline = time.monotonic() + 2 * self._settings.answer_seconds
        changes = []
        for dpid, thread in work.items():
            change = _outcome(thread, deadline)
            busy = SwitchChange(dpid, errors=(f"switch {dpid:016x} is still busy with the last change",))
            changes.append(change or busy)
        return tuple(changes)


def _outcome(thread: Any, deadline: float) -> Any:
    """What a green thread returns; None where it has not ended by ``deadline``, and goes on."""
    outcome = None
    with hub.Timeout(max(0.0, deadline - time.monotonic()), False):
        outcome = thread.wait()
    return outcome


def _by_switch(rules: frozenset[Rule]) -> dict[int, set[Rule]]:
    found: dict[int, set[Rule]] = {}
    for number, rule in enumerate(rules, 1):
        found.setdefault(rule.switch, set()).add(rule)
        if number % _SORTED_AT_ONCE == 0:
            hub.sleep(0)
    return found
