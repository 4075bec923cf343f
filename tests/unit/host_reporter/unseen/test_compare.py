"""What of an interface's bytes no socket explains, on series as real interfaces and sockets have them."""

from __future__ import annotations

import pytest

from host_reporter.nic.netdev import Count
from host_reporter.unseen.compare import compare
from host_reporter.unseen.counts import Carried, Moment, Sample
from host_reporter.unseen.verdict import FLOOR, SHARE, judge
from host_reporter.unseen.window import WINDOW_SECONDS, Window

GIGABIT = 125_000_000
SECONDS = 30
ACKNOWLEDGEMENT = 66
"""Bytes of a packet without data: Ethernet, IPv4, and TCP with timestamps."""


def counted(
    sent: float, packets: float, tcp: float, *, received: float = 0, packets_in: float = 0, tcp_in: float = 0
) -> Carried:
    return Carried(Count(int(sent), int(received)), Count(int(packets), int(packets_in)), Count(int(tcp), int(tcp_in)))


def unseen(carried: Carried) -> tuple[float, float]:
    """Bytes a second that nothing explains, sent and received, of an interface that has carried this in a window."""
    first, last = Sample(0.0, {"eth0": counted(0, 0, 0)}), Sample(SECONDS, {"eth0": carried})
    rates = compare(first, last)
    assert rates is not None
    return rates["eth0"].sent.unseen, rates["eth0"].received.unseen


def test_tcp_in_full_packets_is_explained_with_headers_and_acknowledgements() -> None:
    payload = GIGABIT * SECONDS * 0.94
    packets = payload / 1448
    carried = counted(
        payload + packets * 66, packets, payload, received=packets / 2 * ACKNOWLEDGEMENT, packets_in=packets / 2
    )
    assert unseen(carried) == (0, 0)


def test_an_interface_that_cuts_packets_itself_may_count_one_for_many() -> None:
    payload = GIGABIT * SECONDS * 0.94
    assert unseen(counted(payload + payload / 1448 * 66, payload / 65_160, payload)) == (0, 0)


def test_tcp_that_repeats_every_twentieth_packet_is_explained() -> None:
    payload = GIGABIT * SECONDS * 0.9
    packets = payload / 1448 * 1.05
    assert unseen(counted(packets * 1514, packets, payload)) == (0, 0)


def test_many_small_packets_are_explained_whatever_their_headers_are() -> None:
    messages = 2_000_000.0
    # One byte of payload each, over IPv6 with two VLAN tags and all options, in a tunnel over IPv6.
    assert unseen(counted(messages * 197, messages, messages)) == (0, 0)


def test_a_receiver_that_only_acknowledges_sends_nothing_unexplained() -> None:
    payload = 10 * GIGABIT * SECONDS * 0.94
    packets = payload / 1448
    carried = counted(
        packets * ACKNOWLEDGEMENT, packets, 0, received=packets * 1514, packets_in=packets, tcp_in=payload
    )
    assert unseen(carried) == (0, 0)


def test_most_of_a_blast_of_udp_is_found_and_its_direction() -> None:
    datagrams = GIGABIT * SECONDS / 1514
    sent, received = unseen(counted(datagrams * 1514, datagrams, 0))
    assert 0.85 * GIGABIT < sent <= GIGABIT
    assert received == 0


def test_udp_beside_tcp_is_found() -> None:
    payload, datagrams = GIGABIT * SECONDS * 0.5, GIGABIT * SECONDS * 0.4 / 1514
    packets = payload / 1448
    sent, _ = unseen(counted(packets * 1514 + datagrams * 1514, packets + datagrams, payload))
    assert 0.2 * GIGABIT < sent < 0.4 * GIGABIT


def test_a_socket_whose_bytes_leave_by_another_interface_than_that_of_its_address_is_no_trouble() -> None:
    payload = GIGABIT * SECONDS * 0.9
    first = Sample(0.0, {"eth0": counted(0, 0, 0), "eth1": counted(0, 0, 0)})
    last = Sample(
        SECONDS,
        {"eth0": counted(payload / 1448 * 1514, payload / 1448, 0), "eth1": counted(0, 0, payload)},
    )
    rates = compare(first, last)
    assert rates is not None
    assert rates["eth0"].sent.unseen == rates["eth1"].sent.unseen == 0


def test_what_is_unexplained_is_found_at_the_interface_that_carries_it() -> None:
    payload = GIGABIT * SECONDS * 0.9
    first = Sample(0.0, {"eth0": counted(0, 0, 0), "eth1": counted(0, 0, 0)})
    blast, tcp = counted(payload, payload / 1514, 0), counted(payload / 1448 * 1514, payload / 1448, payload)
    rates = compare(first, Sample(SECONDS, {"eth0": tcp, "eth1": blast}))
    assert rates is not None
    assert rates["eth0"].sent.unseen == 0
    assert rates["eth1"].sent.unseen > 0.6 * payload / SECONDS


def test_sockets_of_containers_explain_bytes_too() -> None:
    payload = GIGABIT * SECONDS * 0.9
    first = Sample(0.0, {"eth0": counted(0, 0, 0)})
    carried = counted(payload / 1448 * 1514, payload / 1448, 0)
    rates = compare(first, Sample(SECONDS, {"eth0": carried}, elsewhere=Count(int(payload), 0)))
    assert rates is not None
    assert rates["eth0"].sent.unseen == 0


def test_rdma_is_not_explained_by_sockets_and_ip_over_infiniband_is() -> None:
    payload = GIGABIT * SECONDS
    roce, empty = Carried(Count(payload, 0)), Carried(Count())
    infiniband = Carried(Count(int(payload / 2044 * 2076), 0), Count(payload // 2044, 0), Count(payload, 0))
    rates = compare(
        Sample(0.0, ports={"mlx5_0:1": empty, "mlx5_1:1": empty}),
        Sample(SECONDS, elsewhere=Count(9 * payload, 0), ports={"mlx5_0:1": roce, "mlx5_1:1": infiniband}),
    )
    assert rates is not None
    assert rates["mlx5_0:1"].sent.unseen == GIGABIT
    assert rates["mlx5_1:1"].sent.unseen == 0


@pytest.mark.parametrize(
    "last",
    [
        Sample(SECONDS, {"eth0": counted(5, 1, 0)}),
        Sample(SECONDS, {}),
        Sample(0.0, {"eth0": counted(10, 1, 0)}),
    ],
    ids=["went back", "gone", "no time"],
)
def test_nothing_is_compared_that_cannot_be(last: Sample) -> None:
    assert compare(Sample(0.0, {"eth0": counted(10, 1, 0)}), last) is None


def test_a_rate_is_said_above_floor_and_share_and_until_it_is_half_of_that() -> None:
    from host_reporter.unseen.compare import Rate  # noqa: PLC0415 - beside its only use

    assert judge(None, Rate(FLOOR, FLOOR * 0.99)) is None
    assert judge(None, Rate(FLOOR, FLOOR)) == FLOOR
    assert judge(None, Rate(1e9, 1e9 * SHARE * 0.99)) is None
    assert judge(None, Rate(1e9, 1e9 * SHARE)) == 1e9 * SHARE
    assert judge(FLOOR, Rate(FLOOR, FLOOR * 0.51)) == FLOOR, "one number until it has halved"
    assert judge(FLOOR, Rate(FLOOR, FLOOR * 0.49)) is None
    assert judge(4e6, Rate(9e6, 9e6)) == 9e6


def blast(at: int, *, now: float | None = None) -> Moment:
    """What a second of UDP after the other makes of an interface, looked at in no time."""
    carried = {"eth0": counted(GIGABIT * at, GIGABIT * at / 1514, 0)}
    there = Sample(float(at) if now is None else now, carried)
    return Moment(there, there)


def test_a_window_says_what_lasts_for_half_a_minute_and_counts_it() -> None:
    window = Window()
    for at in range(0, 30, 5):
        window.add(blast(at))
        assert window.said["eth0"][0].rate is None
    for at in range(30, 65, 5):
        window.add(blast(at))
    sent, received = window.said["eth0"]
    assert sent.rate is not None
    assert 0.85 * GIGABIT < sent.rate <= GIGABIT
    assert received.rate is None
    assert sent.carried == 60 * GIGABIT
    assert sent.unseen == pytest.approx(35 * sent.rate)


def test_a_window_that_misses_something_begins_anew_and_says_it_no_longer_after_a_while() -> None:
    window = Window()
    for at in range(0, 35, 5):
        window.add(blast(at))
    window.restart(35.0)
    window.add(blast(40))
    assert window.said["eth0"][0].rate is not None, "what was said stays for a while"
    window.restart(200.0)
    assert window.said["eth0"][0].rate is None


def test_an_interface_made_anew_is_compared_when_a_window_of_it_is_known() -> None:
    window = Window()
    for at in range(0, 35, 5):
        window.add(blast(at))
    window.end()
    assert window.said["eth0"][0].rate is None
    counted_before = window.said["eth0"][0].carried
    for at in range(0, 30, 5):
        window.add(blast(at, now=100.0 + at))
        assert window.said["eth0"][0].rate is None
    window.add(blast(30, now=130.0))
    assert window.said["eth0"][0].rate is not None
    assert window.said["eth0"][0].carried == counted_before + 30 * GIGABIT


def test_a_window_keeps_no_more_samples_than_it_needs() -> None:
    window = Window()
    for at in range(0, 1000, 5):
        window.add(blast(at))
    assert len(window._moments) <= WINDOW_SECONDS / 5 + 2


def test_a_program_that_is_kept_waiting_beside_its_looks_takes_no_tcp_for_something_else() -> None:
    """Counts of the interface that were read late, or sockets that were listed late, are no lack of sockets."""

    def tcp(at: float, socket_time: float) -> Sample:
        payload, known = GIGABIT * 0.9 * at, GIGABIT * 0.9 * socket_time
        return Sample(at, {"eth0": counted(payload / 1448 * 1514, payload / 1448, known)})

    window = Window()
    for at in range(0, 90, 10):
        # Once 9 s pass between the listing and the reading after it.
        delay = 9.0 if at == 40 else 0.0
        window.add(Moment(tcp(at, at), tcp(at + delay, at)))
        assert window.said["eth0"][0].rate is None
