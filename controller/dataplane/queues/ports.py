"""The ports of one switch: which of them are up, and whether their queues are there and obeyed.

A port is proven by itself. One whose queues are somebody else's, cannot be made or do not count what is sent through
them is left as it is and named; the switch orders all others. A switch none of whose ports is proven is not believed.
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
from controller.dataplane.queues.managed import Made
from controller.dataplane.queues.numbers import PortQueues, port_queues, queue_ids
from controller.dataplane.queues.ovsdb import Database
from controller.dataplane.queues.ovsdb_select import OvsdbError
from controller.dataplane.queues.probe import Counters, ProbedPort
from controller.dataplane.values import PortProof, Settings

SHOWN = 3
"""Ports whose problems are told one by one."""

_DEFAULT_RATE_BPS = 1e9
_KBPS = 1e3


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look at a switch's ports came to: why it cannot be ready, and ports whose queues had to be made again."""

    problem: str | None = None
    made_again: tuple[str, ...] = ()


class Ports:
    """All ports of one switch. ``counted`` is told the queues' counters whenever they are read."""

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
        self._settings = settings
        self._database = database
        self._counted = counted
        self._counting = hub.Semaphore(1)
        self._ports: dict[int, Any] = {}
        self._proven: dict[ProbedPort, float] = {}
        self._left: Mapping[int, str] = {}
        self._remark: str | None = None

    @property
    def numbers(self) -> frozenset[int]:
        """All ports by number, without the switch's own, whether they are up or not."""
        return frozenset(self._ports)

    def read(self) -> None:
        """Ask the switch for its ports. Raises SwitchGoneError."""
        replies, _ = self._channel.ask(parser.OFPPortDescStatsRequest(self._channel.datapath, 0))
        self._ports = {port.port_no: port for reply in replies for port in reply.body if port.port_no <= ofp.OFPP_MAX}

    def counters(self) -> Counters:
        """Packets and bytes of every queue; empty where the switch does not tell. Raises SwitchGoneError."""
        # One at a time, so that an older answer is never told after a newer one.
        with self._counting:
            found = probe.read_counters(self._channel)
            self._counted(found)
        return found

    def are_as_proven(self) -> bool:
        """Whether every queue that was proven is still there. Raises SwitchGoneError."""
        counters = self.counters() if self._proven else {}
        return all(self._has_queues(port, counters) for port in self._proven)

    def settle(self, *, anew: bool = False) -> Looked:
        """Make the queues where they are managed, and prove those of ports that are not proven yet, or of all ``anew``.

        Raises SwitchGoneError.
        """
        made = self._make() if self._settings.queues == "managed" else Made()
        if made.problem is not None:
            if anew:
                return Looked(made.problem)
            # Queues that were made and proven stay what they are while nobody can look at the database.
            made = Made(left=self._left, remark=f"its queues cannot be compared with its database: {made.problem}")
        live = self._live()
        self._left = {port.number: made.left[port.number] for port in live if port.number in made.left}
        self._remark = made.remark
        before = {port for port, rate in self._proven.items() if rate == self._rate_bps(port.number)}
        again = tuple(port.name for port in live if port in before and port.number in made.made)
        if not self._settings.probe:
            return Looked(made_again=again)
        if not live:
            self.proofs, self._proven = (), {}
            return Looked("it has no port that is up")
        counters = self.counters()
        keep = {
            port.number
            for port in live
            if not anew and port in before and port.number not in made.made and self._has_queues(port, counters)
        }
        self._prove([port for port in live if port.number not in self._left], keep)
        return Looked(None if self._proven else self._told(), again)

    def problems(self) -> tuple[str, ...]:
        """What an operator should know although the switch is ready."""
        live = len(self._live())
        amiss = len(self._amiss())
        texts = []
        if amiss:
            verb = "is" if amiss == 1 else "are"
            texts.append(f"{amiss} of its {live} ports {verb} not ordered: {self._told()}")
        guessed = [port.name for port in self._live() if self._speed_bps(port.number) is None]
        if guessed and self._settings.queues == "managed":
            texts.append(
                "some ports do not tell their speed, so their queues are made for "
                f"{_DEFAULT_RATE_BPS / 1e9:g} Gbit/s; name it in hosts or links: {_first(guessed)}"
            )
        if self._remark is not None:
            texts.append(self._remark)
        return tuple(texts)

    def unordered(self) -> frozenset[int]:
        """The numbers of ports that are up and whose queues are not ours or not proven."""
        return frozenset(self._amiss())

    def _make(self) -> Made:
        try:
            return managed.make(self._database, self._channel.dpid, self._queues)
        except OvsdbError as error:
            return Made(problem=str(error))

    def _prove(self, ports: list[ProbedPort], keep: set[int]) -> None:
        """Prove those ports that are not in ``keep``."""
        old = {proof.port: proof for proof in self.proofs}
        fresh = [port for port in ports if port.number not in keep]
        made = probe.prove(self._channel, fresh, self._settings.classes) if fresh else ()
        proofs = {proof.port: proof for proof in made}
        # What went down meanwhile could not count anything; it is proven when it is up again.
        self.read()
        live = self._live()
        proofs |= {number: old[number] for number in keep}
        for port in live:
            if port.number in self._left:
                proofs[port.number] = PortProof(port.number, port.name, {}, self._left[port.number])
        self.proofs = tuple(proofs[port.number] for port in live if port.number in proofs)
        self._proven = {
            port: self._rate_bps(port.number)
            for port in live
            if port.number in proofs and proofs[port.number].problem is None
        }

    def _amiss(self) -> dict[int, str]:
        found = {proof.port: proof.problem for proof in self.proofs if proof.problem is not None}
        return dict(self._left) | found

    def _told(self) -> str:
        return _first(self._amiss().values()) or "none of its ports could be proven"

    def _live(self) -> list[ProbedPort]:
        """The ports that are up: only they can be proven."""
        return [
            ProbedPort(number, probe.port_name(port.name))
            for number, port in sorted(self._ports.items())
            if not port.state & ofp.OFPPS_LINK_DOWN and not port.config & ofp.OFPPC_PORT_DOWN
        ]

    def _has_queues(self, port: ProbedPort, counters: Counters) -> bool:
        return all((port.number, queue) in counters for queue in queue_ids(self._settings.classes))

    def _speed_bps(self, number: int) -> float | None:
        """The rate of a port by the settings, or else its own; None: neither tells."""
        configured = self._settings.rates_bps.get((self._channel.dpid, number))
        if configured is not None:
            return configured
        port = self._ports.get(number)
        return float(port.curr_speed * _KBPS) if port is not None and port.curr_speed else None

    def _rate_bps(self, number: int) -> float:
        return self._speed_bps(number) or _DEFAULT_RATE_BPS

    def _queues(self, number: int) -> PortQueues:
        return port_queues(
            self._rate_bps(number),
            classes=self._settings.classes,
            job_floor=self._settings.job_floor,
            other_floor=self._settings.other_floor,
        )


def _first(texts: Iterable[str]) -> str:
    """The first few of them in one line."""
    told = list(texts)
    return "; ".join(told[:SHOWN]) + ("; ..." if len(told) > SHOWN else "")
