"""Generated RoCEv2 packets: as scapy makes them, and whole behind the kernel."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import time
from ipaddress import ip_address

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

from evaluation.bench.support.waiting import wait_until
from tests.support.rounds import first_that
from topologies.rocev2.packets import Ends, datagram, is_whole, number_of
from topologies.rocev2.send import Stream, send
from topologies.rocev2.sink import Sink

PORTS = (49152, 4791)
DATA = bytes(range(256)) * 4
ADDRESSES = {4: ("10.0.0.1", "10.0.0.2"), 6: ("fd00::1", "fd00::2")}


def ends(family: int) -> Ends:
    src, dst = map(ip_address, ADDRESSES[family])
    return Ends(src, dst, *PORTS)


def made(family: int, number: int = 5) -> bytes:
    return datagram(ends(family), 7, number, DATA)


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("traffic_class", [0, 26 << 2 | 3])
def test_a_packet_is_what_scapy_makes_whatever_its_traffic_class(family: int, traffic_class: int) -> None:
    src, dst = ADDRESSES[family]
    ip = (
        IP(src=src, dst=dst, id=0, flags="DF", tos=traffic_class, ttl=3)
        if family == 4
        else IPv6(src=src, dst=dst, tc=traffic_class, hlim=3)
    )
    header = BTH(opcode="RC_RDMA_WRITE_MIDDLE", dqpn=7, psn=5)
    packet = bytes(ip / UDP(sport=PORTS[0], dport=PORTS[1]) / header / Raw(DATA))
    assert packet[28 if family == 4 else 48 :] == made(family)


@pytest.mark.parametrize("family", [4, 6])
def test_a_changed_packet_is_not_whole(family: int) -> None:
    sent, between = made(family), ends(family)
    assert is_whole(between, sent)
    for place in (0, 7, 11, 12, 500, len(sent) - 1):
        assert not is_whole(between, sent[:place] + bytes((sent[place] ^ 1,)) + sent[place + 1 :]), place
    # A switch may set the notices of congestion on the way.
    assert is_whole(between, sent[:4] + b"\xc0" + sent[5:])
    assert not is_whole(between._replace(src=between.dst, dst=between.src), sent)
    assert not is_whole(between, b"")


def test_packets_are_numbered_with_24_bits() -> None:
    assert [number_of(made(4, number)) for number in (0, 2**24 - 1, 2**24)] == [0, 2**24 - 1, 0]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_stream_comes_whole_at_its_rate_with_its_dscp(address: str) -> None:
    def stream() -> int:
        sink = wait_until(lambda: opened(address), 60, what="the port that other tests use")
        try:
            began = time.monotonic()
            sent = send(Stream(ip_address(address), rate_bps=2e6, dscp=11, seconds=0.5))
            seconds = time.monotonic() - began
            sink.receive(0.2)
            counts = sink.by_source[address]
        finally:
            sink.close()
        assert (counts.packets, counts.damaged, dict(counts.dscps)) == (sent, 0, {11: sent})
        # A late sender makes up for a hundredth of a second at most, so it is never faster.
        assert counts.bytes * 8 <= 2e6 * (seconds + 0.02)
        return sent

    assert first_that(lambda sent: sent > 10, stream) > 10


def opened(address: str) -> Sink | None:
    """Returns a sink at an address; None while another run of these tests has one there."""
    try:
        return Sink(ip_address(address))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return None


def test_the_programs_tell_of_each_source_line_by_line() -> None:
    run = [sys.executable, "-m"]
    # No other test listens at this address.
    address = "127.47.91.2"
    sink = subprocess.Popen(
        [*run, "topologies.rocev2.sink", address, "--interval", "0.05"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert sink.stdout is not None
        first = json.loads(sink.stdout.readline())
        assert first["sources"] == {}
        command = [*run, "topologies.rocev2.send", address, "--rate", "1e6", "--seconds", "0.2", "--dscp", "26"]
        subprocess.run(command, check=True, timeout=60)
        told = json.loads(sink.stdout.readline())
        while not told["sources"]:
            told = json.loads(sink.stdout.readline())
    finally:
        sink.kill()
        sink.wait()
        if sink.stdout is not None:
            sink.stdout.close()
    assert told["sources"]["127.0.0.1"]["damaged"] == 0
    assert told["sources"]["127.0.0.1"]["dscps"].keys() == {"26"}
