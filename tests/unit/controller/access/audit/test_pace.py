from __future__ import annotations

from controller.access.audit.pace import A_MINUTE, MINUTE, MOST_CLIENTS, STRANGERS_A_MINUTE, Pace


def admits(pace: Pace, client: str, now: float) -> bool:
    """Returns what the pace says of a caller who has proved who it is."""
    return pace.admits(client, now, is_stranger=False)


def test_a_client_that_is_refused_without_end_has_few_records() -> None:
    pace = Pace()
    assert sum(admits(pace, "a", n * 0.01) for n in range(1000)) == A_MINUTE
    assert admits(pace, "b", 10.0)
    assert pace.dequeue_skipped() == 1000 - A_MINUTE
    assert pace.dequeue_skipped() == 0
    assert admits(pace, "a", MINUTE)


def test_many_clients_need_little_memory() -> None:
    pace = Pace()
    for n in range(3 * MOST_CLIENTS):
        assert admits(pace, str(n), 0.0)
    assert len(pace._clients) == MOST_CLIENTS


def test_strangers_of_any_number_of_addresses_have_few_records_and_keep_nobody_else_from_one() -> None:
    pace = Pace()
    assert sum(pace.admits(f"10.0.{n}", n * 0.001, is_stranger=True) for n in range(5000)) == STRANGERS_A_MINUTE
    assert pace.skipped == 5000 - STRANGERS_A_MINUTE
    assert admits(pace, "ann", 10.0)
    assert pace.admits("10.0.1", MINUTE, is_stranger=True)


def test_one_stranger_does_not_use_up_the_records_of_all() -> None:
    pace = Pace()
    assert sum(pace.admits("10.0.0.1", 0.0, is_stranger=True) for _ in range(1000)) == A_MINUTE
    assert pace.admits("10.0.0.2", 0.0, is_stranger=True)
    for n in range(3 * MOST_CLIENTS):
        pace.admits(f"10.0.{n}", 0.0, is_stranger=True)
    assert not pace.admits("10.0.0.1", 0.0, is_stranger=True)
