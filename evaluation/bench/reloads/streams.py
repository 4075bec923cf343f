"""Streams between two hosts that keep links full: numbered packets just under a rate, and TCP the other way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from evaluation.bench.reloads import stream_ends

WINDOW = 200_000
"""Bytes of TCP on the way at most. The queues on the way hold them, so that they drop none."""
_END_SECONDS = 30

Kind = Literal["datagrams", "segments"]
Start = Callable[[str, list[str]], "subprocess.Popen[str]"]
"""Starts a command on a host, with pipes for its standard input and output."""


class Host(NamedTuple):
    """A host's name, as ``Start`` takes it, and its address."""

    name: str
    address: str


class Numbered(NamedTuple):
    """What became of numbered packets: how many were sent, came, and came after one with a higher number."""

    sent: int
    came: int
    late: int


@dataclass
class Streams:
    """The results, known after the streams have ended: the packets by their port, and TCP's rate in bit/s."""

    numbered: dict[int, Numbered] = field(default_factory=dict)
    tcp_bps: float = 0.0


class Flow(NamedTuple):
    """A stream of numbered packets: what they are, and their rate in bit/s with the Ethernet headers."""

    kind: Kind
    rate_bps: float


@contextmanager
def full_links(
    start: Start, one: Host, other: Host, flows: Mapping[int, Flow], tcp_port: int, *, source_port: int = 0
) -> Iterator[Streams]:
    """While this is open, ``one`` sends ``flows``, by port, to ``other``, which sends it TCP as fast as it can.

    The TCP stream comes from ``source_port``, which cannot be used again for a minute; 0 is any.
    """
    streams = Streams()
    processes: list[subprocess.Popen[str]] = []

    def begin(host: Host, *words: object) -> subprocess.Popen[str]:
        process = start(host.name, [sys.executable, stream_ends.__file__, *map(str, words)])
        processes.append(process)
        return process

    try:
        counts = {port: begin(other, f"count_{flow.kind}", port) for port, flow in flows.items()}
        drained = begin(one, "drain", tcp_port, WINDOW)
        for sink in (*counts.values(), drained):
            _first_line(sink)
        sent = {port: begin(one, f"send_{flow.kind}", other.address, port, flow.rate_bps)
                for port, flow in flows.items()}  # fmt: skip
        filled = begin(other, "fill", one.address, tcp_port, source_port)
        yield streams
        # Each sender ends when its standard input does, and its receiver soon after it.
        for sender in (*sent.values(), filled):
            _close(sender)
        for port, sender in sent.items():
            streams.numbered[port] = Numbered(int(_words(sender)[0]), *map(int, _words(counts[port])))
        streams.tcp_bps = float(_words(drained)[0])
        _words(filled)
    finally:
        for process in processes:
            with process:
                process.kill()


def _close(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None


def _words(process: subprocess.Popen[str]) -> list[str]:
    return process.communicate(timeout=_END_SECONDS)[0].split()


def _first_line(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    process.stdout.readline()
