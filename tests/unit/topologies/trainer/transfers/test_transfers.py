"""The trainer's tasks over real sockets on loopback: what is sent when, and how much."""

from __future__ import annotations

import itertools
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.bench.support.waiting import wait_until
from tests.support.trainer.tasks import Job, error_of, plan, readable
from topologies.trainer.specs import demand
from topologies.trainer.transfers import parameter_server, ring
from topologies.trainer.transfers.frames import BLOCK_BYTES, HEADER_BYTES, Channel, Frame, Kind, job_key
from topologies.trainer.transfers.parts import equal_parts
from topologies.trainer.transfers.task import Addresses, HaltedError


@pytest.mark.parametrize("in_one_thread", [True, False])
@pytest.mark.parametrize("size", [1, BLOCK_BYTES, 3 * BLOCK_BYTES + 17])
def test_a_parameter_server_moves_exactly_the_demand(size, in_one_thread):
    job = Job(plan("ps", 4, size), in_one_thread=in_one_thread)
    server, *workers = job.run()
    assert [(c.sent, c.received) for c in server] == [(3 * size, 3 * size)] * 3
    assert [(c.sent, c.received) for (c,) in workers] == [(3 * size, 3 * size)] * 3
    assert job.finished[0] == [1, 2, 3]
    assert {d.bytes for d in demand(job.job)} == {size}
    assert len(demand(job.job)) == 6


@pytest.mark.parametrize("in_one_thread", [True, False])
@pytest.mark.parametrize(("hosts", "size"), [(2, 1_000_001), (3, 4_000_000), (5, 7)])
def test_a_ring_moves_exactly_the_demand(hosts, size, in_one_thread):
    job = Job(plan("ring", hosts, size), in_one_thread=in_one_thread)
    by_pair = {(d.src, d.dst): d.bytes for d in demand(job.job)}
    for rank, (successor, predecessor) in enumerate(job.run()):
        host, after = f"h{rank + 1}", f"h{(rank + 1) % hosts + 1}"
        before = f"h{(rank - 1) % hosts + 1}"
        assert successor.sent == 3 * by_pair[host, after]
        assert predecessor.received == 3 * by_pair[before, host]
    assert all(job.finished[rank] == [1, 2, 3] for rank in range(hosts))


@pytest.mark.parametrize("in_one_thread", [True, False])
def test_nobody_pulls_before_all_have_pushed(in_one_thread):
    job = Job(plan("ps", 3, 1000, iterations=2), in_one_thread=in_one_thread)
    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        early, late = job.worker(1), job.worker(2)
        for iteration in (1, 2):
            early.send(Frame(Kind.PUSH, 1, iteration, 1000))
            assert not readable(early, 0.2), "the first worker got its pull before the second had pushed"
            late.send(Frame(Kind.PUSH, 2, iteration, 1000))
            for channel in (early, late):
                channel.expect(Frame(Kind.PULL, 0, iteration, 1000))
            early.send(Frame(Kind.GOT, 1, iteration))
            assert job.finished[0] == list(range(1, iteration)), "finished before the last pull had arrived"
            late.send(Frame(Kind.GOT, 2, iteration))
            wait_until(lambda iteration=iteration: job.finished[0] == list(range(1, iteration + 1)))
        assert len(serving.result(10)) == 2


def test_a_ring_sends_on_only_what_it_has_received():
    """The test plays h2 of two: h1's second message must wait for, and carry, what h2 sends."""
    job = Job(plan("ring", 2, 10, iterations=1))
    with job.pool() as pool:
        peer = pool.submit(ring.peer, job.context(0))
        context = job.context(1)
        listener = context.listen()
        to_peer = context.call(0)
        from_peer = context.welcome(listener, {0})[0]
        first = from_peer.expect(Frame(Kind.CHUNK, 0, 1, 5, step=0, chunk=0))
        assert first.value == 1
        assert not readable(from_peer, 0.2), "step 1 was sent before step 0 had been received"
        to_peer.send(Frame(Kind.CHUNK, 1, 1, 5, 0, 1, value=2), memoryview(b"fresh"))
        received = bytearray(5)
        second = from_peer.expect(Frame(Kind.CHUNK, 0, 1, 5, step=1, chunk=1), memoryview(received))
        assert second.value == 3
        assert received == b"fresh"
        to_peer.send(Frame(Kind.CHUNK, 1, 1, 5, 1, 0, value=3), memoryview(b"whole"))
        peer.result(10)
    assert job.finished[0] == [1]


def test_a_wrong_sum_is_noticed():
    job = Job(plan("ring", 2, 10, iterations=1))
    with job.pool() as pool:
        peer = pool.submit(ring.peer, job.context(0))
        context = job.context(1)
        listener = context.listen()
        to_peer = context.call(0)
        context.welcome(listener, {0})
        to_peer.send(Frame(Kind.CHUNK, 1, 1, 5, 0, 1, value=9))
        to_peer.send(Frame(Kind.CHUNK, 1, 1, 5, 1, 0, value=3))
        assert "not the sum" in error_of(peer)
    assert job.finished[0] == []


def test_a_worker_that_goes_ends_the_job_with_its_name():
    job = Job(plan("ps", 3, 1000))
    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        job.worker(2).send(Frame(Kind.PUSH, 2, 1, 1000))
        job.worker(1)
        job.sockets[1].shut()
        assert "h2 closed the connection" in error_of(serving)


def test_a_message_out_of_turn_ends_the_job():
    job = Job(plan("ps", 2, 1000))
    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        job.worker(1).send(Frame(Kind.PUSH, 1, 2, 1000))
        assert "where" in error_of(serving)


def test_a_message_that_comes_slowly_wakes_its_reader_seldom():
    size, piece = 400_000, 4000
    whole = message(Frame(Kind.PUSH, 1, 1, size))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as here:
        there = server.accept()[0]

        def trickle() -> None:
            for start in range(0, len(whole), piece):
                here.sendall(whole[start : start + piece])
                time.sleep(0.002)

        with there, ThreadPoolExecutor(1) as pool:
            channel = Channel(there, job_key("a"), "test")
            channel.gathers(size)
            feeding = pool.submit(trickle)
            before = switches()
            channel.expect(Frame(Kind.PUSH, 1, 1, size))
            assert switches() - before < 20
            assert channel.received == size
            feeding.result(10)


def message(frame: Frame) -> bytes:
    """A message as it is on the wire."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as here:
        there = server.accept()[0]
        with there, ThreadPoolExecutor(1) as pool:
            sending = pool.submit(Channel(here, job_key("a"), "test").send, frame)
            whole = there.recv(HEADER_BYTES + frame.length, socket.MSG_WAITALL)
            sending.result(10)
            return whole


def switches() -> int:
    """How often this thread has gone to sleep so far."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def test_compute_counts_from_when_the_data_came_so_that_it_does_not_drift():
    job = Job(plan("ps", 2, 1, compute=60.0))
    context, begin = job.context(1), time.monotonic()
    context.compute(begin - 59.9)
    assert 0.09 <= time.monotonic() - begin < job.job.compute_seconds
    context.compute(begin - 120)
    assert time.monotonic() - begin < job.job.compute_seconds


def test_a_halt_interrupts_computing_and_waiting():
    job = Job(plan("ps", 2, 1, compute=60.0))
    with job.pool() as pool:
        computing = pool.submit(job.context(1).compute, time.monotonic())
        job.sockets[1].shut()
        assert isinstance(computing.exception(5), HaltedError)
        calling = pool.submit(job.context(1).call, 0)
        assert isinstance(calling.exception(5), HaltedError)


@given(st.integers(1, 10**9), st.integers(2, 64))
def test_chunks_are_equal_to_a_byte_and_make_up_the_model(size, peers):
    chunks = equal_parts(size, peers)
    assert sum(chunks) == size
    assert len(chunks) == peers
    assert max(chunks) - min(chunks) <= 1


@given(st.integers(2, 40))
def test_each_peer_sends_what_it_received_the_step_before(peers):
    for rank, step in itertools.product(range(peers), range(1, 2 * (peers - 1))):
        assert ring.sent_chunk(rank, step, peers) == ring.sent_chunk((rank - 1) % peers, step - 1, peers)


def test_a_host_without_a_number_has_no_address():
    assert Addresses((IPv4Address("10.0.0.0"),)).of("h13") == "10.0.0.13"
    with pytest.raises(ValueError, match="server1"):
        Addresses((IPv4Address("10.0.0.0"),)).of("server1")
