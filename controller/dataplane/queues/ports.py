"""The ports of one switch: which are up, and whether their queues exist and are obeyed.

Each port is proven by itself. A port is reported as a problem if its queues are somebody else's, cannot be made, or do
not count the packets sent through them; the switch still orders all other ports. A switch without any proven port is
not ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.channel import Channel
from controller.dataplane.queues import managed, probe
from controller.dataplane.queues.managed import QueueResult
from controller.dataplane.queues.numbers import PortQueues, port_queues, queue_ids
from controller.dataplane.queues.ovsdb import Database
from controller.dataplane.queues.ovsdb_select import OvsdbError
from controller.dataplane.queues.probe import Counters, ProbedPort
from controller.dataplane.queues.received import read_received
from controller.dataplane.values import PortProof, Settings

SHOWN = 3
"""Limits the ports whose problems are reported one by one."""

_DEFAULT_RATE_BPS = 1e9
_KBPS = 1e3


@dataclass(frozen=True, slots=True)
class PortCheck:
    """The result of a look at a switch's ports: why it is not ready, and the ports whose queues were made again."""

    problem: str | None = None
    made_again: tuple[str, ...] = ()


class Ports:
    """All ports of one switch. ``counted`` receives the queues' counters whenever they are read.

    A proof shows that a queue's packets are counted there. It stays valid when the rates of that queue change in
    place, because its number, its counters and what waits in it stay. Only queues that were made need a new proof.
    """

    def __init__(
        self,
        channel: Channel,
        settings: Settings,
        *,
        database: Database | None,
        counted: Callable[[Counters], None],
    ) -> None:
        self.proofs: tuple[PortProof, ...] = ()
        self._channel = channel
        self._settings = self._next_settings = settings
        self._database = database
        self._counted = counted
        self._counting = hub.Semaphore(1)
        self._ports: dict[int, Any] = {}
        self._proven: frozenset[ProbedPort] = frozenset()
        self._given: dict[int, PortQueues] = {}
        self._skipped: Mapping[int, str] = {}
        self._remark: str | None = None

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of all ports, up or down, without the switch's own port."""
        return frozenset(self._ports)

    def change(self, settings: Settings) -> None:
        """Use ``settings`` from the next ``settle`` on. One that has begun keeps the settings that it began with."""
        self._next_settings = settings

    def read(self) -> None:
        """Read the switch's ports. Raises SwitchGoneError."""
        replies, _ = self._channel.ask(parser.OFPPortDescStatsRequest(self._channel.datapath, 0))
        self._ports = {port.port_no: port for reply in replies for port in reply.body if port.port_no <= ofp.OFPP_MAX}

    def counters(self) -> Counters:
        """Returns packets and bytes of every queue, or an empty mapping if the switch refuses.

        Raises SwitchGoneError.
        """
        # One request at a time, so that an older answer is never handed on after a newer one.
        with self._counting:
            counters = probe.read_counters(self._channel)
            self._counted(counters)
        return counters

    def received(self) -> Mapping[int, int]:
        """Returns the bytes that each port has received, as far as the switch counts them. Raises SwitchGoneError."""
        return {port: count for port, count in read_received(self._channel).items() if port in self._ports}

    def are_as_proven(self) -> bool:
        """Returns whether every queue that was proven still exists. Raises SwitchGoneError."""
        counters = self.counters() if self._proven else {}
        return all(self._has_queues(port, counters) for port in self._proven)

    def settle(self, *, anew: bool = False) -> PortCheck:
        """Make the queues if they are managed, and prove those of unproven ports, or with ``anew`` of all ports.

        Raises SwitchGoneError.
        """
        self._settings = self._next_settings
        result = self._make() if self._settings.queues == "managed" else QueueResult()
        if result.problem is not None:
            if anew:
                return PortCheck(result.problem)
            # Queues that were proven stay so while the database cannot be read.
            result = QueueResult(
                skipped=self._skipped,
                remark=f"its queues cannot be compared with its database: {result.problem}",
                is_compared=False,
            )
        live = self._live()
        self._skipped = {port.number: result.skipped[port.number] for port in live if port.number in result.skipped}
        self._remark = result.remark
        again = self._note_given(live, result)
        if not self._settings.probe:
            self.proofs, self._proven = (), frozenset()
            return PortCheck(made_again=again)
        if not live:
            self.proofs, self._proven = (), frozenset()
            return PortCheck("it has no port that is up")
        counters = self.counters()
        keep = {
            port.number
            for port in live
            if not anew
            and port in self._proven
            and port.number not in result.created
            and self._has_queues(port, counters)
        }
        self._prove([port for port in live if port.number not in self._skipped], keep)
        return PortCheck(None if self._proven else self._summary(), again)

    def problems(self) -> tuple[str, ...]:
        """Returns the problems of a switch that is ready."""
        live = len(self._live())
        faults = len(self._faults())
        texts = []
        if faults:
            verb = "is" if faults == 1 else "are"
            texts.append(f"{faults} of its {live} ports {verb} not ordered: {self._summary()}")
        guessed = [port.name for port in self._live() if self._speed_bps(port.number) is None]
        if guessed and self._settings.queues == "managed":
            texts.append(
                "some ports do not report their speed, so their queues are made for "
                f"{_DEFAULT_RATE_BPS / 1e9:g} Gbit/s; name it in hosts or links: {_first(guessed)}"
            )
        if self._remark is not None:
            texts.append(self._remark)
        return tuple(texts)

    def unordered(self) -> frozenset[int]:
        """Returns the numbers of the ports that are up and whose queues are not ours or not proven."""
        return frozenset(self._faults())

    def _make(self) -> QueueResult:
        try:
            return managed.ensure_queues(self._database, self._channel.dpid, self._queues)
        except OvsdbError as error:
            return QueueResult(problem=str(error))

    def _note_given(self, live: list[ProbedPort], result: QueueResult) -> tuple[str, ...]:
        """Note what the ports' queues hold now. Returns the names of proven ports whose queues somebody else changed.

        A port whose queues were written although they had been given the same values before was changed by others.
        """
        wanted = {port.number: self._queues(port.number) for port in live}
        written = result.created | result.changed
        same = {number for number, queues in wanted.items() if self._given.get(number) == queues}
        known = wanted.keys() - self._skipped.keys() if result.is_compared else same
        self._given = {number: wanted[number] for number in known}
        return tuple(port.name for port in live if port in self._proven and port.number in same & written)

    def _prove(self, ports: list[ProbedPort], keep: set[int]) -> None:
        """Prove the ports that are not in ``keep``."""
        old = {proof.port: proof for proof in self.proofs}
        fresh = [port for port in ports if port.number not in keep]
        settings = self._settings
        proven = probe.prove(self._channel, fresh, settings.classes, settings.code_points) if fresh else ()
        proofs = {proof.port: proof for proof in proven}
        # A port that went down meanwhile could not count packets. It is proven when it is up again.
        self.read()
        live = self._live()
        proofs |= {number: old[number] for number in keep}
        for port in live:
            if port.number in self._skipped:
                proofs[port.number] = PortProof(port.number, port.name, {}, self._skipped[port.number])
        self.proofs = tuple(proofs[port.number] for port in live if port.number in proofs)
        self._proven = frozenset(port for port in live if port.number in proofs and proofs[port.number].problem is None)

    def _faults(self) -> dict[int, str]:
        unproven = {proof.port: proof.problem for proof in self.proofs if proof.problem is not None}
        return dict(self._skipped) | unproven

    def _summary(self) -> str:
        return _first(self._faults().values()) or "none of its ports could be proven"

    def _live(self) -> list[ProbedPort]:
        """Returns the ports that are up: only they can be proven."""
        return [
            ProbedPort(number, probe.port_name(port.name))
            for number, port in sorted(self._ports.items())
            if not port.state & ofp.OFPPS_LINK_DOWN and not port.config & ofp.OFPPC_PORT_DOWN
        ]

    def _has_queues(self, port: ProbedPort, counters: Counters) -> bool:
        return all((port.number, queue) in counters for queue in self._ids)

    @property
    def _ids(self) -> tuple[int, ...]:
        return queue_ids(self._settings.classes, self._settings.queue_numbers)

    def _speed_bps(self, number: int) -> float | None:
        """Returns the rate of a port from the settings, or else its own speed, or else None."""
        configured = self._settings.rates_bps.get((self._channel.dpid, number))
        if configured is not None:
            return configured
        port = self._ports.get(number)
        return float(port.curr_speed * _KBPS) if port is not None and port.curr_speed else None

    def rate_bps(self, number: int) -> float:
        """Returns the rate of a port in bit/s; 1 Gbit/s where nobody tells it."""
        return self._speed_bps(number) or _DEFAULT_RATE_BPS

    def _queues(self, number: int) -> PortQueues:
        return port_queues(
            self.rate_bps(number),
            classes=self._settings.classes,
            job_floor=self._settings.job_floor,
            other_floor=self._settings.other_floor,
            numbers=self._settings.queue_numbers,
        )


def _first(texts: Iterable[str]) -> str:
    """Returns the first SHOWN texts as one line."""
    shown = list(texts)
    return "; ".join(shown[:SHOWN]) + ("; ..." if len(shown) > SHOWN else "")
