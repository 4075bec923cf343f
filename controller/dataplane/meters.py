"""The meters of one switch: each limits the control traffic that one port may send before all jobs.

Meters have no cookie. Those with the numbers from ``FIRST`` on, ``MOST`` of them, are Trainyard's; all others are left
alone. They are made before a rule needs them, compared at each whole look, and deleted when no rule needs them any
more. A switch of which no port is named is not asked for meters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.channel import Channel
from controller.dataplane.values import Settings

FIRST = 0x7472
MOST = 64
_LEAST_KBPS = 1
_MOST_KBPS = 0xFFFF_FFFF
_MODIFIED = object()
"""Stands for a meter that works in another way than ours do."""

Limits = Mapping[int, object]
"""The kilobits per second of each meter, by its number."""


class Meters:
    """The meters of one switch. ``rate_bps`` returns the rate of a port; ``numbers`` returns the ports that it has.

    ``in_use`` returns the meters that rules name; None: it is not known.
    """

    def __init__(
        self,
        channel: Channel,
        settings: Settings,
        *,
        rate_bps: Callable[[int], float],
        numbers: Callable[[], Collection[int]],
        in_use: Callable[[], frozenset[int] | None],
    ) -> None:
        self.settings = settings
        """The settings from the next look on."""
        self.ports: tuple[tuple[int, int], ...] = ()
        """The ports whose control traffic has a meter, each with the number of that meter."""
        self.problem: str | None = None
        """Why control traffic does not go first; None: it does, or nobody wants it to."""
        self._channel = channel
        self._rate_bps = rate_bps
        self._numbers = numbers
        self._in_use = in_use
        self._given: Limits = {}
        self._may_have_own = False
        self._lock = hub.Semaphore(1)

    def settle(self) -> str | None:
        """Make the meters as they should be. Returns what somebody else had changed, in words.

        Raises SwitchGoneError.
        """
        with self._lock:
            return self._settle()

    def _settle(self) -> str | None:
        wanted = meter_ports(self.settings, self._channel.dpid, self._numbers())
        limits = {number: self._kbps(port) for port, number in wanted}
        self._may_have_own = bool(self._may_have_own or wanted or self._in_use())
        if not self._may_have_own:
            self.problem = self._missing(wanted, {})
            return None
        replies, refusals = self._channel.ask(
            parser.OFPMeterConfigStatsRequest(self._channel.datapath, 0, ofp.OFPM_ALL)
        )
        if refusals:
            self.ports, self._given = (), {}
            self.problem = f"it has no meters ({refusals[0].reason}), so {_NOT_FIRST}" if wanted else None
            return None
        held = own_limits(stat for reply in replies for stat in reply.body)
        self._may_have_own = bool(held or wanted)
        refused = self._change(held, limits)
        self.ports = tuple((port, number) for port, number in wanted if number not in refused)
        lost = sum(held.get(number) != limit for number, limit in self._given.items() if number not in refused)
        self._given = {number: limit for number, limit in limits.items() if number not in refused}
        self.problem = self._missing(wanted, refused)
        return _repaired(lost) if lost else None

    def _change(self, held: Limits, limits: Mapping[int, int]) -> dict[int, str]:
        """Send what differs. Returns the meters that the switch has refused, each with the reason."""
        different = [number for number, limit in limits.items() if held.get(number) != limit]
        messages = [self._mod(_command(number in held), number, limits[number]) for number in different]
        stale = held.keys() - limits.keys()
        used = self._in_use() if stale else frozenset()
        # A switch deletes the rules of a meter with it, so one that a rule still names stays until the next look.
        deleted = sorted(stale - used) if used is not None else []
        messages += [self._mod(ofp.OFPMC_DELETE, number) for number in deleted]
        if not messages:
            return {}
        refusals = self._channel.settle(messages)
        return {different[each.index]: each.reason for each in refusals if each.index < len(different)}

    def _mod(self, command: int, number: int, kbps: int | None = None) -> Any:
        bands = [] if kbps is None else [parser.OFPMeterBandDrop(rate=kbps, burst_size=0)]
        return parser.OFPMeterMod(self._channel.datapath, command, ofp.OFPMF_KBPS, number, bands)

    def _kbps(self, port: int) -> int:
        return min(_MOST_KBPS, max(_LEAST_KBPS, round(self.settings.control_share * self._rate_bps(port) / 1e3)))

    def _missing(self, wanted: Collection[tuple[int, int]], refused: Mapping[int, str]) -> str | None:
        if refused:
            return f"it refuses meters ({next(iter(refused.values()))}), so {_NOT_FIRST}"
        named = {port for dpid, port in self.settings.control_ports if dpid == self._channel.dpid}
        unknown = sorted(named - {port for port, _ in wanted})
        return f"control_traffic names port {unknown[0]}, which it does not have" if unknown else None


_NOT_FIRST = "control traffic of the ports in control_traffic has the place of other packets"


def meter_ports(settings: Settings, dpid: int, numbers: Collection[int]) -> tuple[tuple[int, int], ...]:
    """Returns the ports of a switch that have a meter, each with the meter's number."""
    ports = sorted(port for switch, port in settings.control_ports if switch == dpid and port in numbers)
    return tuple((port, FIRST + i) for i, port in enumerate(ports[:MOST]))


def own_limits(stats: Iterable[Any]) -> dict[int, object]:
    """Returns the limits of our meters among those that a switch tells."""
    return {stat.meter_id: _limit(stat) for stat in stats if FIRST <= stat.meter_id < FIRST + MOST}


def _repaired(count: int) -> str:
    return (
        f"{count} meter{'s' * (count != 1)} that had been deleted or changed {'were' if count > 1 else 'was'} put back"
    )


def _limit(stat: Any) -> object:
    kinds = [isinstance(band, parser.OFPMeterBandDrop) for band in stat.bands]
    is_ours = kinds == [True] and stat.flags & (ofp.OFPMF_KBPS | ofp.OFPMF_PKTPS) == ofp.OFPMF_KBPS
    return stat.bands[0].rate if is_ours else _MODIFIED


def _command(is_held: bool) -> int:
    command: int = ofp.OFPMC_MODIFY if is_held else ofp.OFPMC_ADD
    return command
