"""Who is taken for a peer of a job, and who is sent away or waited for."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.loopback import has_been_read
from tests.support.trainer.tasks import Job, plan
from topologies.trainer.transfers import parameter_server
from topologies.trainer.transfers.frames import HEADER_BYTES, Channel, Frame, Kind, PeerLostError, job_key
from topologies.trainer.transfers.task import TaskContext


def test_strangers_are_sent_away_and_the_job_goes_on():
    job = Job(plan("ps", 2, 1000))
    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        server = (job.addresses.of("h1"), job.job.port)
        wait_until(lambda: knock(server, b"GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n" * 2) == b"")
        with socket.create_connection(server, timeout=5) as sock:
            other = Channel(sock, job_key("another job"), "h1")
            other.send(Frame(Kind.HELLO, 1))
            with pytest.raises(PeerLostError):
                other.receive()
        parameter_server.work(job.context(1))
        serving.result(10)


def greeting(job: Job, rank: int) -> bytes:
    """What a peer says first, as bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as here:
        there, _ = server.accept()
        with there:
            Channel(here, job_key(job.job.id), "test").send(Frame(Kind.HELLO, rank))
            return there.recv(HEADER_BYTES, socket.MSG_WAITALL)


def connect(job: Job) -> socket.socket:
    """A connection to the job's server, as soon as that listens."""
    found: list[socket.socket] = []

    def tried() -> bool:
        try:
            found.append(socket.create_connection((job.addresses.of("h1"), job.job.port), timeout=10))
        except ConnectionRefusedError:
            return False
        return True

    wait_until(tried)
    return found[0]


def test_strangers_that_say_nothing_or_half_a_word_do_not_keep_the_peers_waiting():
    # A server that waited for them would wait longer than this test does.
    job = Job(plan("ps", 3, 1000), hello_seconds=60.0)
    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        with connect(job) as silent, connect(job) as half:
            half.sendall(greeting(job, 1)[:-1])
            workers = [pool.submit(parameter_server.work, job.context(rank)) for rank in (1, 2)]
            assert len(serving.result(10)) == 2
            assert [len(worker.result(10)) for worker in workers] == [1, 1]
            # Neither was taken for a peer, and both are sent away.
            assert silent.recv(1) == b""
            with contextlib.suppress(ConnectionResetError):
                assert half.recv(1) == b""


def test_a_greeting_in_pieces_is_a_greeting():
    job = Job(plan("ps", 2, 1000))
    with job.pool() as pool:
        welcomed = pool.submit(lambda context: context.welcome(context.listen(), {1}), job.context(0))
        with connect(job) as slow:
            for byte in greeting(job, 1):
                assert not welcomed.done()
                slow.sendall(bytes([byte]))
                time.sleep(0.005)
            channel = welcomed.result(10)[1]
            Channel(slow, job_key(job.job.id), "test").send(Frame(Kind.PUSH, 1, 1, 1), memoryview(b"x"))
            received = bytearray(1)
            channel.expect(Frame(Kind.PUSH, 1, 1, 1), memoryview(received))
            assert received == b"x"


def test_a_peer_that_connects_and_greets_late_is_welcome():
    job = Job(plan("ps", 3, 1000), hello_seconds=0.1)
    with job.pool() as pool:
        welcomed = pool.submit(lambda context: context.welcome(context.listen(), {1, 2}), job.context(0))
        with connect(job) as late, connect(job) as prompt:
            prompt.sendall(greeting(job, 2))
            time.sleep(0.5)
            assert not welcomed.done()
            late.sendall(greeting(job, 1))
            assert {rank: channel.peer for rank, channel in welcomed.result(10).items()} == {1: "h2", 2: "h3"}


def test_the_second_of_two_that_claim_to_be_the_same_peer_is_sent_away():
    job = Job(plan("ps", 3, 1000))
    with job.pool() as pool:
        welcomed = pool.submit(lambda context: context.welcome(context.listen(), {1, 2}), job.context(0))
        with connect(job) as first, connect(job) as again, connect(job) as other:
            first.sendall(greeting(job, 1))
            wait_until(lambda: has_been_read(first))
            again.sendall(greeting(job, 1))
            assert again.recv(1) == b""
            other.sendall(greeting(job, 2))
            assert set(welcomed.result(10)) == {1, 2}


def test_who_loses_a_connection_before_the_greeting_calls_again(monkeypatch: pytest.MonkeyPatch):
    """The first connection is reset before this end sends anything; on the second the job trains to its end."""
    job = Job(plan("ps", 2, 1000))
    (listener,) = job.context(0).listen()
    send, sockets = Channel.send, list[socket.socket]()

    def send_late(channel: Channel, frame: Frame, body: memoryview | None = None) -> None:
        if not sockets:
            sockets.append(listener.accept()[0])
            sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sockets[0].close()
            wait_until(lambda: select.select([channel._sock], [], [], 0)[0])
        send(channel, frame, body)

    monkeypatch.setattr(Channel, "send", send_late)
    with job.pool() as pool:
        worker = pool.submit(parameter_server.work, job.context(1))
        wait_until(lambda: sockets and sockets[0].fileno() < 0)
        context = job.context(0)
        channel = pool.submit(lambda: context.welcome([listener], {1})).result(10)[1]
        for iteration in range(1, context.iterations + 1):
            channel.expect(Frame(Kind.PUSH, 1, iteration, 1000))
            channel.send(Frame(Kind.PULL, 0, iteration, 1000))
            channel.expect(Frame(Kind.GOT, 1, iteration))
        worker.result(10)


@pytest.mark.parametrize("architecture", ["ps", "ring"])
def test_who_loses_a_connection_after_the_greeting_calls_again(monkeypatch: pytest.MonkeyPatch, architecture: str):
    """The first connection is reset when its greeting comes, as by a kernel that has given up the handshake."""
    job, lost = Job(plan(architecture, 3, 1000)), list[int]()
    accept = TaskContext._accept

    def accept_second(context: TaskContext, listener: socket.socket) -> tuple[socket.socket, Channel]:
        sock, channel = accept(context, listener)
        if context.rank not in lost:
            lost.append(context.rank)
            wait_until(lambda: select.select([sock], [], [], 0)[0])
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
            return accept(context, listener)
        return sock, channel

    monkeypatch.setattr(TaskContext, "_accept", accept_second)
    job.run()
    assert sorted(lost) == ([0] if architecture == "ps" else [0, 1, 2])
    assert [job.finished[rank] for rank in lost] == [[1, 2, 3]] * len(lost)


def test_a_listener_has_room_for_twice_as_many_handshakes_as_peers():
    job = Job(plan("ps", 11, 1000))
    with job.pool():
        (listener,) = job.context(0).listen()
        info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
        # Of a listener, tcpi_sacked is the backlog.
        assert struct.unpack_from("I", info, 28)[0] >= 20


def test_a_peer_that_never_comes_is_named():
    job = Job(plan("ps", 3, 1000))
    lone = TaskContext(job.job, 0, 3, job.addresses, job.sockets[0], print, connect_seconds=0.1)
    caller = TaskContext(job.job, 1, 3, Job(job.job).addresses, job.sockets[1], print, connect_seconds=0.1)
    with pytest.raises(PeerLostError, match="h2, h3 did not connect"):
        parameter_server.serve(lone)
    with pytest.raises(PeerLostError, match="h1 does not answer on port 5001"):
        parameter_server.work(caller)
    job.sockets[0].close()
    job.sockets[1].close()


def knock(server: tuple[str, int], words: bytes) -> bytes | None:
    try:
        with socket.create_connection(server, timeout=5) as sock:
            sock.sendall(words)
            return sock.recv(100)
    except ConnectionResetError:
        return b""
    except OSError:
        return None
