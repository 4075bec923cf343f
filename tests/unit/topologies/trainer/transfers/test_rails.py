"""The trainer's tasks over several rails and over IPv6: which connection carries how many of a message's bytes."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import IPv6Address

import pytest

from evaluation.bench.support.free_port import free_port
from tests.support.trainer.tasks import Job, OneAddress, error_of, plan
from topologies.experiments.addressing import of_host, of_job, with_prefix
from topologies.trainer.transfers import asynchronous, parameter_server
from topologies.trainer.transfers.frames import BLOCK_BYTES, Channel, Frame, Kind, job_key
from topologies.trainer.transfers.rails import RailChannels
from topologies.trainer.transfers.task import Addresses


@pytest.mark.parametrize("in_one_thread", [True, False])
@pytest.mark.parametrize("architecture", ["ps", "ring"])
@pytest.mark.parametrize("size", [1, 7, 3 * BLOCK_BYTES + 17])
def test_each_rail_carries_an_equal_part_of_what_a_job_sends(architecture, size, in_one_thread):
    one, two = (Job(plan(architecture, 3, size), in_one_thread=in_one_thread, rails=rails) for rails in (1, 2))
    totals = [[(channel.sent, channel.received) for channel in channels] for channels in one.run()]
    found = two.run()
    assert [[(channel.sent, channel.received) for channel in channels] for channels in found] == totals
    assert two.finished[0] == [1, 2, 3]
    for channel in (channel for channels in found for channel in channels):
        first, second = channel._channels
        # A message of an odd number of bytes is no longer on one rail than on the other by more than one.
        assert abs(first.sent - second.sent) <= 3 * 4
        assert first.sent + second.sent == channel.sent


@pytest.mark.parametrize("sync", ["asp", "ssp:2+overlap", "asp+sasp"])
def test_asynchronous_jobs_use_all_rails(sync):
    job = Job(plan("ps", 3, 4001).model_copy(update={"sync": sync}), rails=2)
    with job.pool() as pool:
        serving = pool.submit(asynchronous.serve, job.context(0))
        workers = [pool.submit(asynchronous.work, job.context(rank)) for rank in (1, 2)]
        for (channel,) in (worker.result(20) for worker in workers):
            assert channel.sent == 3 * 4001
            first, second = channel._channels
            assert abs(first.sent - second.sent) <= 3 * asynchronous.LAYERS
        serving.result(20)
    assert job.finished[0] == [1, 2, 3]


def test_a_job_trains_over_ipv6():
    job = Job(plan("ps", 3, 1000))
    job.addresses = OneAddress((IPv6Address("::"),))
    job.job = job.job.model_copy(update={"port": free_port()})
    assert all(channel.sent == 3000 for channels in job.run() for channel in channels)
    assert job.finished[0] == [1, 2, 3]


def pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    """A connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = stack.enter_context(socket.create_connection(server.getsockname(), timeout=20))
        there = stack.enter_context(server.accept()[0])
    there.settimeout(20)
    here.settimeout(None)
    return here, there


def test_a_rail_that_is_not_read_does_not_keep_another_waiting():
    size = 64 * BLOCK_BYTES  # more than any kernel holds
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        (first, slow), (second, quick) = pair(stack), pair(stack)
        rails = RailChannels([Channel(sock, job_key("a"), "h2") for sock in (first, second)])
        sending = pool.submit(rails.send, Frame(Kind.PUSH, 1, 1, size))
        half = Frame(Kind.PUSH, 1, 1, size // 2)
        Channel(quick, job_key("a"), "h1").expect(half)
        assert not sending.done()
        Channel(slow, job_key("a"), "h1").expect(half)
        sending.result(20)
        assert (rails.sent, rails.peer) == (size, "h2")


def test_a_rail_that_breaks_ends_the_job_with_the_peers_name():
    job = Job(plan("ps", 2, 1000), rails=2)
    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        worker = job.worker(1)
        worker._channels[1]._sock.shutdown(socket.SHUT_RDWR)
        worker._channels[0].send(Frame(Kind.PUSH, 1, 1, 500))
        assert "h2" in error_of(serving)


def test_an_experiment_says_which_addresses_its_jobs_use():
    assert [str(subnet) for subnet in of_job("ipv4", 2, 5)] == ["10.0.0.0", "10.1.0.0"]
    assert [str(subnet) for subnet in of_job("both", 1, 0)] == ["10.0.0.0"]
    both = Addresses(of_job("both", 2, 1))
    assert (both.rails, both.of("h13", 1)) == (2, "fd00:0:0:1::d")
    assert of_host("both", 13) == ("10.0.0.13", "fd00::d")
    assert [with_prefix(address) for address in of_host("both", 1, 1)] == ["10.1.0.1/24", "fd00:0:0:1::1/64"]
