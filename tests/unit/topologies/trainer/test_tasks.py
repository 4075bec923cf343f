"""The trainer's tasks over real sockets on loopback, each in a thread of this process."""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import socket
import time
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.families.names import FamilyKey, Owner, family_in_force
from controller.wire import JobSpec
from evaluation.bench.support.waiting import wait_until
from topologies.experiments.experiment import JobPlan
from topologies.experiments.family_plan import USER
from topologies.trainer.job_recorder import PATTERN
from topologies.trainer.specs import demand, job_spec
from topologies.trainer.transfers import parameter_server, ring
from topologies.trainer.transfers.frames import BLOCK_BYTES, HEADER_BYTES, Channel, Frame, Kind, PeerLostError, job_key
from topologies.trainer.transfers.task import HELLO_SECONDS, Addresses, HaltedError, Sockets, TaskContext

_networks = itertools.count(1)


def addresses() -> Addresses:
    """A loopback network of its own for each test, so that none meets another's sockets."""
    return Addresses(IPv4Address(f"127.{1 + os.getpid() % 250}.{next(_networks)}.0"))


def plan(architecture: str, hosts: int, model_bytes: int, iterations: int = 3, compute: float = 0.0) -> JobPlan:
    return JobPlan(
        id="a", arrival=0.0, architecture=architecture, hosts=tuple(f"h{i}" for i in range(1, hosts + 1)), port=5001,
        model="m", model_bytes=model_bytes, compute_seconds=compute, iterations=iterations, curve="c",
    )  # fmt: skip


class Job:
    """The contexts of all tasks of a job, and the iterations that each reported as finished."""

    def __init__(self, job: JobPlan, *, hello_seconds: float = HELLO_SECONDS, in_one_thread: bool = True) -> None:
        self.job = job
        self.hello_seconds = hello_seconds
        self.in_one_thread = in_one_thread
        self.finished = defaultdict(list)
        self.sockets = [Sockets() for _ in job.hosts]
        self.addresses = addresses()

    def context(self, rank: int) -> TaskContext:
        return TaskContext(
            self.job, rank, self.job.iterations, self.addresses, self.sockets[rank], self.finished[rank].append, 10.0,
            hello_seconds=self.hello_seconds, kernel_buffers=self.in_one_thread,
        )  # fmt: skip

    def run(self) -> list[list[Channel]]:
        def task(rank: int) -> list[Channel]:
            if self.job.architecture == "ring":
                return ring.peer(self.context(rank))
            return parameter_server.work(self.context(rank)) if rank else parameter_server.serve(self.context(rank))

        with self.pool() as pool:
            return [future.result(20) for future in [pool.submit(task, rank) for rank in range(len(self.job.hosts))]]

    @contextmanager
    def pool(self):
        try:
            with ThreadPoolExecutor(len(self.job.hosts)) as pool:
                try:
                    yield pool
                finally:
                    # Whoever still blocks when the test is over (or has failed) is let go.
                    for sockets in self.sockets:
                        sockets.shut()
        finally:
            for sockets in self.sockets:
                sockets.close()

    def worker(self, rank: int) -> Channel:
        """A worker that the test plays itself."""
        return self.context(rank).call(0)


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
            time.sleep(0.1)
            again.sendall(greeting(job, 1))
            assert again.recv(1) == b""
            other.sendall(greeting(job, 2))
            assert set(welcomed.result(10)) == {1, 2}


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
    chunks = ring.chunk_bytes(size, peers)
    assert sum(chunks) == size
    assert len(chunks) == peers
    assert max(chunks) - min(chunks) <= 1


@given(st.integers(2, 40))
def test_each_peer_sends_what_it_received_the_step_before(peers):
    for rank, step in itertools.product(range(peers), range(1, 2 * (peers - 1))):
        assert ring.sent_chunk(rank, step, peers) == ring.sent_chunk((rank - 1) % peers, step - 1, peers)


@given(st.sampled_from(["ps", "ring"]), st.integers(2, 13), st.integers(1, 10**8))
def test_the_registered_demand_is_the_architectures_total(architecture, hosts, size):
    spec = job_spec(plan(architecture, hosts, size), 1e9)
    assert sum(d.bytes for d in spec.demand) == 2 * (hosts - 1) * size
    assert sum(task.port is not None for task in spec.tasks) == (1 if architecture == "ps" else hosts)
    assert spec.arrival == 1e9


def test_a_jobs_target_is_registered():
    assert job_spec(plan("ps", 3, 8), 1e9).target is None
    assert job_spec(plan("ps", 3, 8).model_copy(update={"target": 0.92}), 1e9).target == 0.92


def test_a_job_is_of_the_family_that_it_names_and_never_of_its_models():
    alone, kin = plan("ps", 3, 8), plan("ring", 3, 8).model_copy(update={"family": "resnet"})
    assert alone.model
    assert owned_family(job_spec(alone, 1e9)) is None
    assert owned_family(job_spec(kin, 1e9)) == FamilyKey(Owner(user=USER), "resnet")


def owned_family(spec: JobSpec) -> FamilyKey | None:
    """The family that the controller gives a job which the agent on some host registers."""
    name = family_in_force(spec.family, spec.model)
    return None if name is None else FamilyKey(Owner.of(spec.user, "h1"), name)


def test_a_host_without_a_number_has_no_address():
    assert Addresses(IPv4Address("10.0.0.0")).of("h13") == "10.0.0.13"
    with pytest.raises(ValueError, match="server1"):
        Addresses(IPv4Address("10.0.0.0")).of("server1")


def test_the_pattern_has_the_reporters_groups():
    assert "(?P<iteration>" in PATTERN
    assert "(?P<metric>" in PATTERN


def readable(channel: Channel, seconds: float) -> bool:
    """Whether anything arrives on a channel within ``seconds``; takes nothing from it."""
    sock = channel._sock
    sock.settimeout(seconds)
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        sock.settimeout(None)


def knock(server: tuple[str, int], words: bytes) -> bytes | None:
    try:
        with socket.create_connection(server, timeout=5) as sock:
            sock.sendall(words)
            return sock.recv(100)
    except ConnectionResetError:
        return b""
    except OSError:
        return None


def error_of(future: Future) -> str:
    error = future.exception(10)
    assert isinstance(error, PeerLostError)
    return str(error)
