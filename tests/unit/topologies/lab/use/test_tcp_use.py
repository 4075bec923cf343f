"""What TCP did on hosts, by the kernel's counters of their network namespaces."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from topologies.lab.use.tcp_use import TcpMeter, TcpUse

SNMP = "Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: RtoAlgorithm InSegs OutSegs RetransSegs\nTcp: 1 7 {sent} {again}\n"
NETSTAT = (
    "TcpExt: SyncookiesSent TCPTimeouts TCPSpuriousRTOs\nTcpExt: 0 {timeouts} {spurious}\nIpExt: InOctets\nIpExt: 9\n"
)


def count(proc: Path, pid: int, *, sent: int, again: int, timeouts: int, spurious: int) -> None:
    folder = proc / str(pid) / "net"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "snmp").write_text(SNMP.format(sent=sent, again=again))
    (folder / "netstat").write_text(NETSTAT.format(timeouts=timeouts, spurious=spurious))


def test_counters_are_of_each_host_and_from_the_beginning_on(tmp_path: Path) -> None:
    count(tmp_path, 7, sent=1000, again=10, timeouts=5, spurious=2)
    count(tmp_path, 8, sent=50, again=0, timeouts=0, spurious=0)
    meter = TcpMeter({"h1": 7, "h2": 8}, tmp_path)
    count(tmp_path, 7, sent=1500, again=14, timeouts=8, spurious=3)
    assert meter.use() == (TcpUse("h1", 500, 4, 3, 1), TcpUse("h2", 0, 0, 0, 0))


@pytest.mark.parametrize(("file", "what"), [("snmp", "Tcp"), ("netstat", "TcpExt")])
def test_a_kernel_without_a_counter_is_said(tmp_path: Path, file: str, what: str) -> None:
    count(tmp_path, 7, sent=1, again=1, timeouts=1, spurious=1)
    (tmp_path / "7" / "net" / file).write_text(f"{what}: Other\n{what}: 1\n")
    with pytest.raises(FileNotFoundError, match=f"{file}: table {what} has no counter"):
        TcpMeter({"h1": 7}, tmp_path)


def test_this_kernel_has_all_counters() -> None:
    meter = TcpMeter({"here": os.getpid()})
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sock:
        sock.sendall(b"x")
        server.accept()[0].close()
    (here,) = meter.use()
    assert here.sent > 0
