"""How workers get the model of a parameter server: sent to them, or when they ask for it; and what is noted of it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from evaluation.bench.support.waiting import wait_until
from tests.support.trainer.tasks import Job, error_of, plan, readable
from topologies.experiments.experiment import JobPlan
from topologies.trainer.barriers.record import ServerMoments, WorkerMoments
from topologies.trainer.transfers import parameter_server
from topologies.trainer.transfers.arrivals import Arrivals
from topologies.trainer.transfers.frames import BLOCK_BYTES, Frame, Kind

ASKED = {"pulls": "asked"}


@pytest.mark.parametrize("rails", [1, 2])
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("in_one_thread", [True, False])
@pytest.mark.parametrize("size", [1, BLOCK_BYTES + 17])
def test_a_model_that_is_asked_for_is_as_many_bytes(size, in_one_thread, recorded, rails):
    asked = plan("ps", 4, size).model_copy(update=ASKED)
    job = Job(asked, in_one_thread=in_one_thread, recorded=recorded, rails=rails)
    server, *workers = job.run()
    assert [(c.sent, c.received) for c in server] == [(3 * size, 3 * size)] * 3
    assert [(c.sent, c.received) for (c,) in workers] == [(3 * size, 3 * size)] * 3
    assert job.finished[0] == [1, 2, 3]


@pytest.mark.parametrize("in_one_thread", [True, False])
def test_nobody_may_ask_before_all_have_pushed_and_who_asks_first_is_answered_first(in_one_thread):
    job = Job(plan("ps", 3, 1000, iterations=1).model_copy(update=ASKED), in_one_thread=in_one_thread)
    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        early, late = job.worker(1), job.worker(2)
        early.send(Frame(Kind.PUSH, 1, 1, 1000))
        assert not readable(early, 0.2), "the barrier was open before the second had pushed"
        late.send(Frame(Kind.PUSH, 2, 1, 1000))
        for channel in (early, late):
            channel.expect(Frame(Kind.OPEN, 0, 1))
        assert not readable(early, 0.1), "nobody has asked yet"
        for rank, channel in ((2, late), (1, early)):
            channel.send(Frame(Kind.ASK, rank, 1))
            channel.expect(Frame(Kind.PULL, 0, 1, 1000))
            channel.send(Frame(Kind.GOT, rank, 1))
        assert len(serving.result(10)) == 2


@pytest.mark.parametrize("pulls", ["sent", "asked"])
@pytest.mark.parametrize("in_one_thread", [True, False])
def test_the_moments_of_iterations_are_noted_in_their_order(in_one_thread, pulls):
    job = Job(
        plan("ps", 3, 1000, compute=0.01).model_copy(update={"pulls": pulls}),
        in_one_thread=in_one_thread,
        recorded=True,
    )
    job.run()
    server, *workers = [record.moments() for record in job.records]
    assert isinstance(server, ServerMoments)
    assert [len(moments) for moments in server.pushed] == [3, 3]
    assert len(server.opened) == 3
    for rank, worker in enumerate(workers, 1):
        assert isinstance(worker, WorkerMoments)
        assert (len(worker.ready), len(worker.entered)) == (4, 3)
        steps = zip(
            worker.ready, worker.entered, server.pushed[rank - 1], server.opened, worker.ready[1:], strict=False
        )
        for ready, entered, pushed, opened, later in steps:
            assert ready + 0.009 <= entered <= pushed <= opened <= later


def test_pushes_are_noted_when_they_come_and_not_in_the_order_of_ranks():
    job = Job(plan("ps", 3, 1000, iterations=1), recorded=True)
    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        first, second = job.worker(1), job.worker(2)
        second.send(Frame(Kind.PUSH, 2, 1, 1000))
        wait_until(lambda: job.records[0].moments().pushed[1])
        first.send(Frame(Kind.PUSH, 1, 1, 1000))
        for rank, channel in ((1, first), (2, second)):
            channel.expect(Frame(Kind.PULL, 0, 1, 1000))
            channel.send(Frame(Kind.GOT, rank, 1))
        serving.result(10)
    (late,), (early,) = job.records[0].moments().pushed
    assert early < late


@pytest.mark.parametrize("pulls", ["sent", "asked"])
@pytest.mark.parametrize("in_one_thread", [True, False])
def test_a_push_is_noted_while_others_still_wait_for_the_model_before(in_one_thread, pulls):
    asked = plan("ps", 3, 1000, iterations=2).model_copy(update={"pulls": pulls})
    job = Job(asked, in_one_thread=in_one_thread, recorded=True)

    def pull(rank, channel, iteration):
        if pulls == "asked":
            channel.expect(Frame(Kind.OPEN, 0, iteration))
            channel.send(Frame(Kind.ASK, rank, iteration))
        channel.expect(Frame(Kind.PULL, 0, iteration, 1000))
        channel.send(Frame(Kind.GOT, rank, iteration))

    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        slow, quick = job.worker(1), job.worker(2)
        for rank, channel in ((1, slow), (2, quick)):
            channel.send(Frame(Kind.PUSH, rank, 1, 1000))
        pull(2, quick, 1)
        quick.send(Frame(Kind.PUSH, 2, 2, 1000))
        wait_until(lambda: len(job.records[0].moments().pushed[1]) == 2)
        assert job.finished[0] == [], "the first iteration goes on"
        pull(1, slow, 1)
        slow.send(Frame(Kind.PUSH, 1, 2, 1000))
        for rank, channel in ((1, slow), (2, quick)):
            pull(rank, channel, 2)
        serving.result(10)
    assert job.finished[0] == [1, 2]
    assert len(job.records[0].moments().opened) == 2


def test_a_worker_that_goes_while_others_are_awaited_ends_the_job_with_its_name():
    job = Job(plan("ps", 3, 1000).model_copy(update=ASKED), recorded=True)
    with job.pool() as pool:
        serving = pool.submit(parameter_server.serve, job.context(0))
        job.worker(2)
        job.worker(1)
        job.sockets[1].shut()
        assert "h2 closed the connection" in error_of(serving)


def test_a_message_counts_as_come_when_all_of_it_is_there():
    job = Job(plan("ps", 3, 100_000, iterations=1))
    with job.pool() as pool:
        context = job.context(0)
        welcome = pool.submit(context.welcome, context.listen(), {1, 2})
        slow, quick = job.worker(1), job.worker(2)
        channels = welcome.result(10)
        for channel in channels.values():
            channel.gathers(100_000)
        arrivals = Arrivals()
        for rank, channel in channels.items():
            arrivals.expect(rank, channel, 100_000)
        slow.send(Frame(Kind.PUSH, 1, 1, 10))
        quick.send(Frame(Kind.PUSH, 2, 1, 100_000))
        rank = next(iter(arrivals))
        assert rank == 2
        channels[rank].expect(Frame(Kind.PUSH, 2, 1, 100_000))


@pytest.mark.parametrize(("architecture", "sync"), [("ps", "ssp:2"), ("ps", "bsp+overlap"), ("ring", "bsp")])
def test_only_a_server_with_a_plain_barrier_is_asked(architecture, sync):
    with pytest.raises(ValidationError, match="pulls: asked is for architecture ps with sync bsp"):
        JobPlan.model_validate(plan(architecture, 3, 10).model_dump() | ASKED | {"sync": sync})
