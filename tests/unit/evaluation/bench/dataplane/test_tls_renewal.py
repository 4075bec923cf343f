"""What the bench of renewals counts: gaps between answers, lost requests, broken connections."""

from __future__ import annotations

import math
import socket
import threading

import numpy as np
import pytest

from evaluation.bench.dataplane.tls_renewal import longest_gap
from evaluation.bench.support.loads.rest_load import Caller

ANSWERS = np.array([0.0, 1.0, 1.5, 4.0, 4.5])


@pytest.mark.parametrize(
    ("began", "ended", "expected"),
    [
        (1.1, 1.4, 0.5),
        (1.2, 2.0, 2.5),
        (0.5, 1.2, 1.0),
        (1.5, 4.0, 2.5),
        (0.0, 4.5, 2.5),
    ],
)
def test_a_gap_counts_where_a_part_of_it_is_in_the_window(began: float, ended: float, expected: float) -> None:
    assert longest_gap(ANSWERS, began, ended) == pytest.approx(expected)


@pytest.mark.parametrize(("began", "ended"), [(-1.0, 1.0), (4.0, 5.0)])
def test_answers_that_end_before_the_window_have_no_gap(began: float, ended: float) -> None:
    assert math.isnan(longest_gap(ANSWERS, began, ended))
    assert math.isnan(longest_gap(np.empty(0), began, ended))


def test_lost_requests_and_broken_connections_are_counted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        served = threading.Thread(target=_serve, args=(server, ("200 OK", "503 Busy", "", "204 No Content")))
        served.start()
        caller = Caller(server.getsockname()[1])
        for _ in range(4):
            caller.call("GET", "/")
        caller.close()
        served.join(10)
    assert (len(caller.tally.answers), caller.tally.lost, caller.tally.broken) == (3, 2, 1)


def _serve(server: socket.socket, statuses: tuple[str, ...]) -> None:
    """Answer one request with each of these, on a connection that is kept; at an empty one hang up instead."""
    connection = server.accept()[0]
    for status in statuses:
        connection.recv(65536)
        if status:
            connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        else:
            connection.close()
            connection = server.accept()[0]
    connection.close()
