"""The dataplane: all connected switches, and the method that makes their rules equal to a plan."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.access.certificates.contexts import TlsContext
from controller.dataplane.audit import Repairs
from controller.dataplane.observed import ObservedSwitch
from controller.dataplane.peers.log import PeerLog
from controller.dataplane.queues.byte_counts import ByteCounts
from controller.dataplane.queues.ovsdb import Databases
from controller.dataplane.session import Session
from controller.dataplane.values import Applied, Settings, SwitchChange, SwitchStatus
from controller.model import Switch
from controller.pieces import Steps
from controller.rules.rule import PIECE, Rule
from controller.steps import in_steps
from controller.wire.announcement import Announcement, parse

LOG = logging.getLogger(__name__)
MAX_LINES = 100
"""Limits the log lines about the switches at one address in a minute."""

Listener = Callable[[str], None]
Announced = Callable[[int, int, Announcement], None]
"""Is told the datapath id and the port number where a host has announced itself."""


class Dataplane:
    """All switches. The methods may wait for switches in the caller's green thread. None raises for a switch's fault.

    ``base`` returns the rules that a switch needs before there is a plan: the pipeline. ``database_tls`` is the TLS to
    databases whose address begins with ``ssl:``.
    """

    def __init__(
        self,
        settings: Settings,
        base: Callable[[Switch], frozenset[Rule]],
        *,
        database_tls: TlsContext | None = None,
    ) -> None:
        self._settings = settings
        self._base = base
        self._databases = Databases(settings.ovsdb, database_tls)
        self._sessions: dict[int, Session | ObservedSwitch] = {}
        self._rivals: dict[int, Any] = {}
        self._accepted: dict[int, frozenset[Rule] | None] = {}
        self._rules: frozenset[Rule] = frozenset()
        self._by_switch: dict[int, frozenset[Rule]] = {}
        self._listeners: list[Listener] = []
        self._announced: list[Announced] = []
        self._repairs: dict[int, Repairs] = {}
        self._bytes = ByteCounts(numbers=settings.queue_numbers)
        self._applying = hub.Semaphore(1)
        self._epoch = 0
        self._is_paused = False
        self._log = PeerLog(LOG, MAX_LINES)
        self._refusals = PeerLog(LOG)

    # Calls of the planner and the API.

    def switches(self) -> tuple[Switch, ...]:
        """Returns the connected switches whose queues are proven, or need no proof, sorted by datapath id.

        Where it only observes, these are all whose ports are known.
        """
        return tuple(self._sessions[dpid].switch() for dpid in sorted(self._sessions) if self._sessions[dpid].ready)

    def apply(self, rules: frozenset[Rule]) -> Applied:
        """Make the ready switches hold exactly ``rules`` (beside those of other owners), and wait for their answers.

        Only the difference is sent, to all switches at once, to each as one transaction. A switch without any of
        ``rules`` was unknown to the plan and stays as it is. A switch that does not answer delays the rest by at most
        ``2 * answer_seconds``.
        """
        with self._applying:
            self._epoch += 1
            self._split(rules)
            work = {}
            for dpid, session in self._sessions.items():
                if session.ready and dpid in self._by_switch:
                    self._accepted.setdefault(dpid, None)
                    work[dpid] = hub.spawn(self._change, session, self._by_switch[dpid], self._epoch)
            changes = self._wait_for(work)
        return Applied(
            flow_mods=sum(change.flow_mods for change in changes),
            errors=tuple(error for change in changes for error in change.errors),
            per_switch=changes,
        )

    def renew_gates(self) -> int:
        """Keep the gates of all ready switches open for another ``gate_seconds``. Returns how many gates are open.

        While it is paused, the gates of all switches are closed instead. A slow switch delays no other.
        """
        deadline = time.monotonic() + self._settings.gate_seconds / 4
        sessions = [session for session in self._sessions.values() if session.ready or self._is_paused]
        threads = [hub.spawn(session.renew_gate) for session in sessions]
        done = sum(_outcome(thread, deadline) is True for thread in threads)
        return 0 if self._is_paused else done

    def set_paused(self, is_paused: bool) -> None:
        """Let the next renewals close the gates of all switches, or open them again. Rules and queues stay."""
        self._is_paused = is_paused

    def change(self, settings: Settings) -> None:
        """Use ``settings`` from now on. The call waits for no switch; each session looks at its ports at once.

        Only what differs is changed: rules, queues and proofs of what is the same stay as they are. A switch whose
        inner, trusted or control ports are others now is told to the listeners, so that a new plan is made. Raises
        ValueError where a setting differs that is not in ``CHANGEABLE``; then nothing has changed.
        """
        fixed = self._settings.fixed_differences(settings)
        if fixed:
            raise ValueError(f"a running dataplane cannot change {', '.join(fixed)}; restart the controller")
        has_new_gate = settings.gate_seconds != self._settings.gate_seconds
        self._settings = settings
        for session in self._sessions.values():
            session.change(settings)
        if has_new_gate:
            # The next renewal may come only after the old, shorter time.
            hub.spawn(self.renew_gates)

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener`` with a sentence whenever a switch becomes ready or stops being so.

        It is also called when a ready switch has other inner, trusted or control ports.
        """
        self._listeners.append(listener)

    def listen(self, *, is_listening: bool) -> None:
        """Have all ready switches send the announcements of hosts for another while, or no more.

        It must be renewed: after MAX_PACKET_INS packets a switch sends no more (see ``peers.message_stream``).
        """
        for session in list(self._sessions.values()):
            session.listen(is_listening=is_listening)

    def subscribe_to_announcements(self, listener: Announced) -> None:
        """Call ``listener`` whenever a host announces itself at a switch."""
        self._announced.append(listener)

    def status(self) -> tuple[SwitchStatus, ...]:
        """Returns the status of every connected switch, and of every switch that a plan was sent to."""
        gone = tuple(
            SwitchStatus(dpid, connected=False, ready=False, reason="not connected", rules=0, bundles=None)
            for dpid in self._accepted.keys() - self._sessions.keys()
        )
        here = tuple(session.status() for session in self._sessions.values())
        return tuple(sorted(here + gone, key=lambda status: status.dpid))

    def class_bytes(self) -> dict[tuple[int, int | None], int]:
        """Returns the bytes that each switch has sent, by (datapath id, service class), summed over its ports.

        The class None is all other traffic. The counts never fall, even if a switch reconnects or its queues are made
        anew.
        """
        self._count()
        return self._bytes.totals()

    def port_bytes(self, *, anew: bool = True) -> dict[tuple[int, int], dict[int | None, int]]:
        """Returns the bytes that each port has sent, by (datapath id, port number) and service class; see above.

        Without ``anew`` no switch is asked: the counts are those that were read last.
        """
        if anew:
            self._count()
        return self._bytes.by_port()

    def received_bytes(self) -> dict[tuple[int, int], int]:
        """Returns the bytes that each port has received, by (datapath id, port number), in all classes together.

        All ready switches are asked. A switch that restarts counts from 0 again.
        """
        asked = {dpid: hub.spawn(session.received) for dpid, session in self._sessions.items() if session.ready}
        return {(dpid, port): count for dpid, thread in asked.items() for port, count in thread.wait().items()}

    def _count(self) -> None:
        threads = [hub.spawn(session.count) for session in self._sessions.values() if session.ready]
        for thread in threads:
            thread.wait()

    # Ryu's events, handed on by the app.

    def connected(self, datapath: Any) -> None:
        """A switch has finished its handshake.

        Nothing proves its datapath id. So if that id has a session already, the new connection replaces it only if the
        old one does not answer any more, as after a sudden restart of the switch.
        """
        session = self._sessions.get(datapath.id)
        if session is None:
            self._begin(datapath)
        elif datapath.id in self._rivals:
            self._refuse(datapath, "another connection of this id is being checked")
        else:
            self._rivals[datapath.id] = datapath
            hub.spawn(self._decide, session, datapath)

    def disconnected(self, datapath: Any) -> None:
        """A connection has ended: the present one of a switch, or an older one."""
        self._withdraw_rival(datapath)
        session = self._sessions.get(datapath.id)
        if session is not None and session.is_of(datapath):
            was_ready = session.ready
            self._drop(datapath.id)
            self._log.say(logging.WARNING, session.address, f"switch {datapath.id:016x} has disconnected")
            if was_ready:
                self._notify(f"switch {datapath.id:016x} has disconnected")

    def deliver(self, message: Any) -> None:
        """Receive a message from a switch."""
        session = self._sessions.get(message.datapath.id)
        if session is None or not session.is_of(message.datapath):
            return
        if isinstance(message, parser.OFPPacketIn):
            self._hear(message)
        elif isinstance(message, parser.OFPFlowRemoved):
            session.rule_removed(message)
        else:
            session.deliver(message)

    def ports_changed(self, datapath: Any) -> None:
        """A port of a switch was added, removed or changed."""
        session = self._sessions.get(datapath.id)
        if session is not None and session.is_of(datapath):
            session.ports_changed()

    def close(self) -> None:
        """Forget all switches. They keep their rules, and obey them until the gate closes."""
        self._rivals.clear()
        for dpid in list(self._sessions):
            self._drop(dpid)

    def _hear(self, message: Any) -> None:
        announcement, port = parse(bytes(message.data)), message.match.get("in_port")
        if announcement is not None and isinstance(port, int) and 0 < port <= ofp.OFPP_MAX:
            for listener in self._announced:
                listener(message.datapath.id, port, announcement)

    def _begin(self, datapath: Any) -> None:
        address = str(datapath.address[0])
        self._log.say(logging.INFO, address, f"switch {datapath.id:016x} has connected from {address}")
        if self._settings.only_observes:
            observed = ObservedSwitch(datapath, self._settings, changed=self._notify, log=self._log)
            self._sessions[datapath.id] = observed
            self._repairs.setdefault(datapath.id, Repairs())
            return
        self._sessions[datapath.id] = Session(
            datapath,
            self._settings,
            database=self._databases.of(datapath.id),
            base=self._base,
            changed=self._notify,
            repairs=self._repairs.setdefault(datapath.id, Repairs()),
            counted=partial(self._bytes.update, datapath.id),
            log=self._log,
            switches=lambda: len(self._sessions),
            is_paused=lambda: self._is_paused,
            remembered=self._accepted.get(datapath.id),
        )

    def _decide(self, session: Session | ObservedSwitch, rival: Any) -> None:
        """Keep ``session`` if its switch answers; else begin a session with ``rival``, if that is still connected."""
        answers = session.answers()
        if not self._withdraw_rival(rival):
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
        # Closing sends an event to Ryu's queue, whose only reader may be the caller: it must not wait there.
        hub.spawn(datapath.close)

    def _withdraw_rival(self, datapath: Any) -> bool:
        """Stop checking a connection. Returns whether it was being checked."""
        is_there: bool = self._rivals.get(datapath.id) is datapath
        if is_there:
            del self._rivals[datapath.id]
        return is_there

    def _drop(self, dpid: int) -> None:
        session = self._sessions.pop(dpid, None)
        if session is not None:
            session.close()
            if not self._repairs[dpid].count:
                # Anybody may connect with any id, so nothing is kept of an id without repairs.
                del self._repairs[dpid]

    def _change(self, session: Session | ObservedSwitch, wanted: frozenset[Rule], epoch: int) -> SwitchChange:
        """Change one switch. A later connection of it begins with the last rules that it accepted."""
        change = session.apply(wanted, epoch)
        if not change.errors:
            self._accepted[session.dpid] = wanted
        return change

    def _split(self, rules: frozenset[Rule]) -> None:
        """Sort ``rules`` by switch.

        Only the difference is sorted, so the cost does not depend on the number of rules.
        """
        gone = in_steps(_by_switch(self._rules - rules))
        new = in_steps(_by_switch(rules - self._rules))
        for dpid in gone.keys() | new.keys():
            left = (self._by_switch.get(dpid, frozenset()) - gone.get(dpid, set())) | new.get(dpid, set())
            if left:
                self._by_switch[dpid] = left
            else:
                del self._by_switch[dpid]
        self._rules = rules

    def _notify(self, reason: str) -> None:
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
    """Returns the result of a green thread, or None if it has not ended by ``deadline``; it then goes on."""
    outcome = None
    with hub.Timeout(max(0.0, deadline - time.monotonic()), False):
        outcome = thread.wait()
    return outcome


def _by_switch(rules: frozenset[Rule]) -> Steps[dict[int, set[Rule]]]:
    grouped: dict[int, set[Rule]] = {}
    for number, rule in enumerate(rules, 1):
        grouped.setdefault(rule.switch, set()).add(rule)
        if number % PIECE == 0:
            yield
    return grouped
