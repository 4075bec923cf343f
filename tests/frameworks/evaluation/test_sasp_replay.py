"""A real job, with its threads, sockets and waiting, and then the same in one process: the same bits in the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import nn

from evaluation.sasp.emulation import recording, server
from evaluation.sasp.emulation.events import RecordedLateness
from evaluation.sasp.emulation.recorders import RecordingStore, RecordingTransport
from evaluation.sasp.emulation.recording import Recording
from sasp.core.scheme import parse
from sasp.core.staleness import PLAIN, StalenessOptions
from sasp.exchange import rules
from sasp.server.server import Server, listen
from sasp.training.layers import find_layers
from sasp.training.optimizer import DecoupledOptimizer
from sasp.training.transports.greeting import Greeting, JoinOptions
from sasp.training.transports.worker import ServerLink
from sasp.training.wrapping import decoupled_over_server

WORKERS, ITERATIONS = 3, 15


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


class Worker:
    """A worker, real or emulated."""

    def __init__(self, rank: int) -> None:
        torch.manual_seed(4)
        self.rank = rank
        self.model = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 3))
        self.inner = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.layers = find_layers(self.model, self.model.parameters())
        self.draw = torch.Generator().manual_seed(rank)
        self.optimizer: DecoupledOptimizer
        self.transport: server.WorkerTransport

    def iterate(self) -> None:
        x = torch.randn(8, 6, generator=self.draw)
        nn.functional.cross_entropy(self.model(x), (x[:, 0] > 0).long()).backward()
        self.optimizer.step()

    def parameters(self) -> list[torch.Tensor]:
        self.optimizer.flush()
        return [parameter.detach().clone() for parameter in self.model.parameters()]


def options(rank: int, scheme: str, late: StalenessOptions) -> JoinOptions:
    return JoinOptions(rank, parse(scheme), "", 1024, 20.0, late)


def real(scheme: str, late: StalenessOptions) -> tuple[list[list[torch.Tensor]], Recording]:
    """The workers' parameters at the end, and how it came to them. Workers are unequally fast."""
    store = RecordingStore(WORKERS, parse(scheme))
    workers = [Worker(rank) for rank in range(WORKERS)]
    found: dict[int, list[torch.Tensor]] = {}
    used: dict[int, list[recording.Used]] = {}
    end = threading.Barrier(WORKERS)

    def work(worker: Worker, address: tuple[str, int]) -> None:
        who = options(worker.rank, scheme, late)
        link = ServerLink(address, Greeting(who, *rules.describe(worker.inner)), worker.layers)
        transport = RecordingTransport(worker.rank, link)
        worker.optimizer = decoupled_over_server(worker.model, worker.inner, worker.layers, transport, who)
        for iteration in range(ITERATIONS):
            worker.iterate()
            time.sleep(0.003 * ((worker.rank + iteration) % 3))
        found[worker.rank] = worker.parameters()
        used[worker.rank] = transport.used
        # Who leaves would change what the others are answered.
        end.wait(20)
        worker.optimizer.close()

    with listen("127.0.0.1", 0, WORKERS) as listener:
        job = Server(listener, WORKERS, parse(scheme), token="", patience=20, store=store)
        threads = [threading.Thread(target=work, args=(worker, listener.getsockname())) for worker in workers]
        for thread in threads:
            thread.start()
        job.run()
        for thread in threads:
            thread.join(20)
    all_used = tuple(one for rank in range(WORKERS) for one in used[rank])
    return [found[rank] for rank in range(WORKERS)], Recording(WORKERS, scheme, 1024, tuple(store.events), all_used)


def replayed(recorded: Recording, late: StalenessOptions) -> list[list[torch.Tensor]]:
    workers = [Worker(rank) for rank in range(WORKERS)]
    lateness = RecordedLateness(recorded.used)
    job = server.Job(WORKERS, options(0, recorded.scheme, late), workers[0].inner, workers[0].layers)
    for worker in workers:
        worker.transport = server.WorkerTransport(worker.rank, job, lateness)
        who = options(worker.rank, recorded.scheme, late)
        worker.optimizer = decoupled_over_server(worker.model, worker.inner, worker.layers, worker.transport, who)
    server.play(recorded.events, workers)
    return [worker.parameters() for worker in workers]


def assert_equal(found: Sequence[Sequence[torch.Tensor]], expected: Sequence[Sequence[torch.Tensor]]) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("scheme", "late"),
    [
        ("bsp+sasp", PLAIN),
        ("bsp+overlap", PLAIN),
        ("bsp+sasp:1", StalenessOptions("momentum")),
        ("bsp+sasp:2", StalenessOptions(delay_compensation=2.0, rates="gap")),
        ("ssp:2+overlap", PLAIN),
        ("ssp:2+sasp", StalenessOptions("momentum")),
        ("asp", PLAIN),
        ("asp+sasp:2", StalenessOptions(rates="staleness")),
    ],
    ids=str,
)
def test_a_recorded_job_is_trained_again_bit_for_bit(scheme: str, late: StalenessOptions, tmp_path: Path) -> None:
    found, recorded = real(scheme, late)
    recorded.write(tmp_path / "delays.json")
    assert recording.read(tmp_path / "delays.json") == recorded
    assert_equal(replayed(recorded, late), found)


def test_something_else_than_a_recording_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]\n")
    with pytest.raises(ValueError, match="no recording of a job"):
        recording.read(tmp_path / "x.json")
