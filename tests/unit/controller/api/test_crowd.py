"""Which connection makes room where there are too many."""

from __future__ import annotations

from eventlet.wsgi import STATE_CLOSE, STATE_IDLE, STATE_REQUEST

from controller.api.http11.crowd import Crowd, State


def joined(crowd: Crowd, *addresses: str, what: str = STATE_IDLE) -> list[State]:
    states: list[State] = [[(address, 1), None, what] for address in addresses]
    for state in states:
        crowd.add(state)
    return states


def test_the_network_with_the_most_loses_its_oldest_idle_one() -> None:
    crowd = Crowd()
    joined(crowd, "10.0.0.1", "10.0.0.2")
    first, second, third = joined(crowd, "fd00::1", "fd00::2", "fd00::ffff:3")
    assert crowd.dispensable() is first
    first[2] = STATE_CLOSE
    second[2] = STATE_REQUEST
    assert crowd.dispensable() is third
    crowd.remove(first)
    assert crowd.dispensable() is third
    crowd.remove(third)
    ones = joined(crowd, "10.0.0.2")
    crowd.remove(second)
    assert crowd.dispensable() is not ones[0], "the older one of the same network goes first"


def test_who_is_busy_everywhere_stays() -> None:
    crowd = Crowd()
    assert crowd.dispensable() is None
    joined(crowd, "10.0.0.1", "10.0.0.1", what=STATE_REQUEST)
    assert crowd.dispensable() is None
    (idle,) = joined(crowd, "10.0.0.2")
    assert crowd.dispensable() is idle
