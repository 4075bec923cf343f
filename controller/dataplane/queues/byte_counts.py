"""Bytes that switches have sent by class, as counts that never fall. Pure.

A switch's own counters restart at 0 when the switch restarts and when a port's queues are made anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.dataplane.queues.numbers import IN_ORDER, QueueNumbers, class_of

MAX_REMEMBERED = 65_536
"""Limits the remembered counters of a switch. Beyond it, the counters of removed ports are forgotten."""


class ByteCounts:
    """The sums over each switch's ports. They survive the removal of ports, queues and switches.

    The sums of a single port are kept as long as its counters are remembered. ``numbers`` are the queues of classes.
    """

    def __init__(self, *, max_remembered: int = MAX_REMEMBERED, numbers: QueueNumbers = IN_ORDER) -> None:
        self._numbers = numbers
        self._max_remembered = max_remembered
        self._last: dict[int, dict[tuple[int, int], int]] = {}
        self._totals: dict[tuple[int, int | None], int] = {}
        self._ports: dict[int, dict[int, dict[int | None, int]]] = {}

    def update(self, dpid: int, counters: Mapping[tuple[int, int], tuple[int, int]]) -> None:
        """Add a switch's counters: (packets, bytes) by (port, queue).

        A counter that is less than before has restarted, so all its bytes are new.
        """
        last = self._last.setdefault(dpid, {})
        ports = self._ports.setdefault(dpid, {})
        for (port, queue), (_, count) in counters.items():
            before = last.get((port, queue), 0)
            risen = count - before if count >= before else count
            last[port, queue] = count
            service_class = class_of(queue, self._numbers)
            key = (dpid, service_class)
            self._totals[key] = self._totals.get(key, 0) + risen
            own = ports.setdefault(port, {})
            own[service_class] = own.get(service_class, 0) + risen
        if len(last) > self._max_remembered:
            self._last[dpid] = {key: count for key, (_, count) in counters.items()}
            present = {port for port, _ in counters}
            self._ports[dpid] = {port: own for port, own in ports.items() if port in present}

    def totals(self) -> dict[tuple[int, int | None], int]:
        """Returns the bytes by (datapath id, service class); the class None is all other traffic."""
        return dict(self._totals)

    def by_port(self) -> dict[tuple[int, int], dict[int | None, int]]:
        """Returns the bytes of each port, by (datapath id, port number) and service class."""
        return {(dpid, port): dict(own) for dpid, ports in self._ports.items() for port, own in ports.items()}
