"""The open connections, and which of them makes room for a new one. Pure.

Whoever holds many connections and asks nothing must not keep others out. So where there is no more room, the network
with the most connections loses one of those on which no request is there.
"""

from __future__ import annotations

from typing import Any

from eventlet.wsgi import STATE_IDLE

from controller.access.network import network_of

State = list[Any]
"""A connection as eventlet has it: its peer's address and port, its socket, and what it does now."""


class OpenConnections:
    """The connections by network, each in the order in which they came."""

    def __init__(self) -> None:
        self._networks: dict[str, dict[int, State]] = {}

    def add(self, state: State) -> None:
        """Note a new connection."""
        self._networks.setdefault(_network(state), {})[id(state)] = state

    def remove(self, state: State) -> None:
        """Forget a connection that has ended."""
        members = self._networks[_network(state)]
        del members[id(state)]
        if not members:
            del self._networks[_network(state)]

    def dispensable(self) -> State | None:
        """Returns the oldest idle connection of the network that has the most, or else of the next; None: all are
        busy.
        """
        for members in sorted(self._networks.values(), key=len, reverse=True):
            for state in members.values():
                if state[2] is STATE_IDLE:
                    return state
        return None


def _network(state: State) -> str:
    return network_of(str(state[0][0]))
