from __future__ import annotations

from controller.access.audit.pace import A_MINUTE, MOST_CLIENTS, Pace


def test_a_client_that_is_refused_without_end_has_few_records() -> None:
    pace = Pace()
    assert sum(pace.admits("a", n * 0.01) for n in range(1000)) == A_MINUTE
    assert pace.admits("b", 10.0)
    assert pace.dequeue_skipped() == 1000 - A_MINUTE
    assert pace.dequeue_skipped() == 0
    assert pace.admits("a", 60.0)


def test_many_clients_need_little_memory() -> None:
    pace = Pace()
    for n in range(3 * MOST_CLIENTS):
        assert pace.admits(str(n), 0.0)
    assert len(pace._clients) == MOST_CLIENTS
