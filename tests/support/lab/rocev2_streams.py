"""Streams of generated RoCEv2 packets to one host of an emulated network, counted there by who sends them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from evaluation.bench.support.waiting import wait_until
from topologies.emulation import Emulation

INTERVAL_SECONDS = 0.1


class Look(NamedTuple):
    """What had come until a moment of ``time.monotonic``, by the host that sent it; see ``topologies.rocev2.sink``."""

    time: float
    by_host: Mapping[str, Mapping[str, Any]]

    def bytes_of(self, host: str) -> int:
        return int(self.by_host.get(host, {}).get("bytes", 0))


class Streams:
    """Counts what comes to ``receiver`` as long as it is open, and ends all that it has started."""

    def __init__(self, emulation: Emulation, receiver: str) -> None:
        self._emulation = emulation
        self._receiver = receiver
        self._host_of = {address: plug.host for plug in emulation.plugs() for address in plug.addresses}
        self._file = emulation.folder / "rocev2.jsonl"
        self._stack = ExitStack()

    def __enter__(self) -> Streams:
        address = self._emulation.address(self._receiver)
        counted = self._stack.enter_context(self._file.open("w"))
        self._run(self._receiver, "topologies.rocev2.sink", address, f"--interval={INTERVAL_SECONDS}", stdout=counted)
        wait_until(self._file.read_text, what="the first line of the sink")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def send(self, sender: str, *, rate_bps: float, dscp: int) -> subprocess.Popen[Any]:
        """Start a stream that goes on until this is closed."""
        address = self._emulation.address(self._receiver)
        return self._run(sender, "topologies.rocev2.send", address, f"--rate={rate_bps}", f"--dscp={dscp}")

    def looks(self) -> list[Look]:
        """Returns the counts at each interval so far."""
        # The last line may not be whole yet.
        documents = map(json.loads, self._file.read_text().split("\n")[:-1])
        return [
            Look(each["time"], {self._host_of[source]: counts for source, counts in each["sources"].items()})
            for each in documents
        ]

    def measure(self, seconds: float) -> dict[str, int]:
        """Returns the bytes that come from each host in some time from now on."""
        begin = self._next_look()
        time.sleep(seconds)
        end = self._next_look()
        return {host: end.bytes_of(host) - begin.bytes_of(host) for host in end.by_host}

    def _next_look(self) -> Look:
        now = time.monotonic()
        wait_until(lambda: self.looks()[-1].time > now, what="the next line of the sink")
        return self.looks()[-1]

    def _run(self, host: str, module: str, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
        process = self._emulation.popen(host, [sys.executable, "-m", module, *arguments], **options)

        def end() -> None:
            process.kill()
            process.wait()

        self._stack.callback(end)
        return process
