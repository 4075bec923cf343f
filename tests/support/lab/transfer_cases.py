"""One push and one pull of a parameter server, by the trainer's own sockets and messages, each timed where it arrives.

Started by a test inside a host's namespace: ``server`` or ``worker``, the bytes of a transfer, how many to time.
Prints the seconds of every transfer that arrives there, from its first byte to its last, in one JSON list.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from ipaddress import IPv4Address

from topologies.experiments.experiment import JobPlan
from topologies.trainer.transfers.frames import Channel, Frame, Kind
from topologies.trainer.transfers.task import Addresses, Sockets, TaskContext

PORT = 5001


def context(role: str, size: int, count: int) -> TaskContext:
    job = JobPlan(
        id="timed", arrival=0.0, architecture="ps", hosts=("h1", "h2"), port=PORT, model="m", model_bytes=size,
        compute_seconds=0.0, iterations=count, curve="c",
    )  # fmt: skip
    rank = 0 if role == "server" else 1
    return TaskContext(
        job, rank, count, Addresses((IPv4Address("10.0.0.0"),)), Sockets(), lambda _iteration: None, 30.0
    )


def timed(channel: Channel, wanted: Frame) -> float:
    # Not from when it is waited for: the other end may still be sending what came before. From its first byte.
    channel._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    select.select([channel._sock], [], [])
    began = time.monotonic()
    channel.expect(wanted)
    return time.monotonic() - began


def main() -> None:
    role, size, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    place = context(role, size, count)
    seconds = []
    if role == "server":
        channel = place.welcome(place.listen(), {1})[1]
        for iteration in range(1, count + 1):
            seconds.append(timed(channel, Frame(Kind.PUSH, 1, iteration, size)))
            channel.send(Frame(Kind.PULL, 0, iteration, size))
            channel.expect(Frame(Kind.GOT, 1, iteration))
    else:
        channel = place.call(0)
        for iteration in range(1, count + 1):
            channel.send(Frame(Kind.PUSH, 1, iteration, size))
            seconds.append(timed(channel, Frame(Kind.PULL, 0, iteration, size)))
            channel.send(Frame(Kind.GOT, 1, iteration))
    sys.stdout.write(json.dumps(seconds) + "\n")


if __name__ == "__main__":
    main()
