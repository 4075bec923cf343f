"""Which connection makes room where there are too many."""

from __future__ import annotations

from eventlet.wsgi import STATE_CLOSE, STATE_IDLE, STATE_REQUEST

from controller.api.http11.open_connections import OpenConnections, State


def joined(connections: OpenConnections, *addresses: str, what: str = STATE_IDLE) -> list[State]:
    states: list[State] = [[(address, 1), None, what] for address in addresses]
    for state in states:
        connections.add(state)
    return states


def test_the_network_with_the_most_loses_its_oldest_idle_one() -> None:
    connections = OpenConnections()
    joined(connections, "10.0.0.1", "10.0.0.2")
    first, second, third = joined(connections, "fd00::1", "fd00::2", "fd00::ffff:3")
    assert connections.dispensable() is first
    first[2] = STATE_CLOSE
    second[2] = STATE_REQUEST
    assert connections.dispensable() is third
    connections.remove(first)
    assert connections.dispensable() is third
    connections.remove(third)
    ones = joined(connections, "10.0.0.2")
    connections.remove(second)
    assert connections.dispensable() is not ones[0], "the older one of the same network goes first"


def test_who_is_busy_everywhere_stays() -> None:
    connections = OpenConnections()
    assert connections.dispensable() is None
    joined(connections, "10.0.0.1", "10.0.0.1", what=STATE_REQUEST)
    assert connections.dispensable() is None
    (idle,) = joined(connections, "10.0.0.2")
    assert connections.dispensable() is idle
