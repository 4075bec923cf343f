"""The parameter-server trainer over real sockets: BSP, SSP and ASP, each with and without SaSP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import nn

import sasp
from sasp.core.chunks import Layout, chunk_elements
from sasp.core.scheme import Versions
from sasp.exchange import frames
from sasp.server.server import Server, listen
from tests.support.paths import ROOT

ITERATIONS, WORKERS, BATCH = 10, 3, 8
SCHEMES = ("bsp", "bsp+overlap", "bsp+sasp", "ssp:2", "ssp:2+overlap", "ssp:2+sasp", "asp", "asp+overlap", "asp+sasp:2")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def make_model(seed: int = 1) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 3))


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5, weight_decay=0.001)


def batch(worker: int, iteration: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * worker + iteration)
    x = torch.randn(BATCH, 6, generator=generator)
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long()


class Spy(Versions):
    """Watches how far workers run apart."""

    spread = 0

    def push(self, worker: int, chunk: int, iteration: int) -> list[tuple[int, int]]:
        answers = super().push(worker, chunk, iteration)
        Spy.spread = max(Spy.spread, iteration - 1 - self.least(chunk))
        return answers


def train(
    scheme: str, *, slow: float = 0.0, chunk_bytes: int = 1024, iterations: Sequence[int] = (ITERATIONS,) * WORKERS
) -> list[dict]:
    """A job of ``WORKERS`` threads and a server; worker 0 is slow by so many seconds an iteration."""
    found: list[dict] = [{} for _ in range(WORKERS)]
    # Before the threads: they have one random generator in common.
    models = [make_model(rank) for rank in range(WORKERS)]
    with listen("127.0.0.1", 0, WORKERS) as listener:
        server = Server(listener, WORKERS, sasp.parse(scheme), token="", patience=20)
        port = listener.getsockname()[1]

        def work(rank: int) -> None:
            plain, began = models[rank], time.monotonic()
            model, optimizer = sasp.join(
                plain, make_optimizer(plain), server=("127.0.0.1", port), rank=rank, scheme=scheme,
                chunk_bytes=chunk_bytes, patience=10,
            )  # fmt: skip
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.5)
            leads = []
            for iteration in range(iterations[rank]):
                x, y = batch(rank, iteration)
                nn.functional.cross_entropy(model(x), y).backward()
                if rank == 0:
                    time.sleep(slow)
                optimizer.step()
                scheduler.step()
                computed, communicated = optimizer.iterations
                leads.append(computed - communicated)
            seconds = time.monotonic() - began
            optimizer.flush()
            assert optimizer.iterations == (iterations[rank], iterations[rank])
            parameters = [parameter.detach().clone() for parameter in plain.parameters()]
            optimizer.close()
            found[rank] = {"parameters": parameters, "leads": leads, "seconds": seconds}

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(WORKERS)]
        for thread in threads:
            thread.start()
        server.run()
        for thread in threads:
            thread.join(20)
    assert all(found), "a worker failed"
    return found


def alone(iterations: Sequence[int] = (ITERATIONS,) * WORKERS) -> list[list[torch.Tensor]]:
    """The same training in one process, on the batches of those workers together that still have one.

    The parameters after each iteration; first of all those before any.
    """
    model = make_model(0)
    optimizer = make_optimizer(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.5)
    found = [[parameter.detach().clone() for parameter in model.parameters()]]
    for iteration in range(max(iterations)):
        optimizer.zero_grad()
        there = [worker for worker in range(WORKERS) if iteration < iterations[worker]]
        for worker in there:
            x, y = batch(worker, iteration)
            (nn.functional.cross_entropy(model(x), y) / len(there)).backward()
        optimizer.step()
        scheduler.step()
        found.append([parameter.detach().clone() for parameter in model.parameters()])
    return found


def loss_with(parameters: list[torch.Tensor]) -> float:
    model = make_model()
    with torch.no_grad():
        for mine, given in zip(model.parameters(), parameters, strict=True):
            mine.copy_(given)
        return sum(float(nn.functional.cross_entropy(model(x), y)) for x, y in (batch(9, i) for i in range(30)))


@pytest.mark.parametrize("scheme", ["bsp", "bsp+overlap", "bsp+sasp"])
def test_bsp_is_training_on_all_batches_together(scheme: str) -> None:
    expected = alone()[-1]
    for worker in train(scheme):
        for a, b in zip(expected, worker["parameters"], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bounds_hold_with_a_slow_worker_and_the_model_learns(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sasp.server.store.Versions", Spy)
    Spy.spread = 0
    known = sasp.parse(scheme)
    found = train(scheme, slow=0.03)
    if known.bound is not None:
        assert Spy.spread <= known.bound
    if known.name != "bsp":
        assert Spy.spread >= 1, "the others should have run ahead of the slow worker"
    if known.name == "asp":
        assert Spy.spread > 3
    for worker in found:
        assert max(worker["leads"]) <= known.lead + (known.sending == "sasp")
    # Without a bound the fast ones may end when little of the slow one's is there; that one has all.
    for worker in found if known.bound is not None else found[:1]:
        assert loss_with(worker["parameters"]) < 0.85 * loss_with(list(make_model(0).parameters()))


@pytest.mark.parametrize("iterations", [(10, 6, 8), (3, 3, 7), (0, 2, 4)], ids=str)
@pytest.mark.parametrize("scheme", ["bsp", "bsp+overlap", "bsp+sasp"])
def test_bsp_goes_on_with_the_means_of_those_who_still_have_data(scheme: str, iterations: tuple[int, ...]) -> None:
    expected = alone(iterations)
    for rank, worker in enumerate(train(scheme, iterations=iterations)):
        for a, b in zip(expected[iterations[rank]], worker["parameters"], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_training_on_unequal_data_ends_and_the_model_learns(scheme: str) -> None:
    found = train(scheme, slow=0.01, iterations=(12, 3, 8))
    assert loss_with(found[0]["parameters"]) < 0.85 * loss_with(list(make_model(0).parameters()))


def test_with_sasp_stale_workers_end_with_the_same_parameters() -> None:
    found = train("ssp:2+sasp", slow=0.01)
    for worker in found[1:]:
        for a, b in zip(found[0]["parameters"], worker["parameters"], strict=True):
            assert torch.equal(a, b)


def pushed_over_a_slow_link(scheme: str) -> list[int]:
    """The layers of the chunks that a worker sends in its first iteration, by a server that reads slowly."""
    order: list[int] = []
    plain = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 512))

    def serve(listener: socket.socket) -> None:
        sock, _ = listener.accept()
        with sock:
            _, body = frames.receive(sock)
            hello = json.loads(body)
            sizes = hello["layers"]
            sock.sendall(frames.json_message(frames.Kind.WELCOME, {"workers": 1}))
            for _ in sizes:
                frames.receive(sock)
            _, body = frames.receive(sock)
            sock.sendall(frames.json_message(frames.Kind.ORDER, json.loads(body)))
            whole = "sasp" not in scheme
            layout = Layout(sizes, chunk_elements(sizes, hello["chunk_bytes"], 4, whole_layers=whole))
            while len(order) < len(layout):
                frame, _ = frames.receive(sock)
                time.sleep(frame.length / 1e6)
                order.append(layout.chunks[frame.chunk].layer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        # So little fits into the kernel on this side that the worker's queue is what holds the chunks.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        model, optimizer = sasp.join(
            plain, make_optimizer(plain), server=listener.getsockname(), rank=0, scheme=scheme, chunk_bytes=64 * 1024
        )
        # Layer 2 begins to leave before the others are freed.
        plain[3].register_full_backward_hook(lambda *_: time.sleep(0.3))
        model(torch.randn(4, 8)).sum().backward()
        thread.join(60)
        optimizer._decoupled._transport.close()
    return order


def test_a_front_layer_overtakes_a_back_layer_that_has_begun_at_a_chunks_border() -> None:
    plain, sasp = pushed_over_a_slow_link("bsp+overlap"), pushed_over_a_slow_link("bsp+sasp")
    assert plain == [2, 1, 0]
    # The last layer has more than 30 chunks, and was freed first; what had left by then cannot be called back.
    assert sorted(set(sasp)) == [0, 1, 2]
    assert sasp[0] == 2
    assert 0 < sasp.index(0) < 16
    assert sasp[-1] == 2
    middle = [place for place, layer in enumerate(sasp) if layer == 1]
    assert middle[-1] < len(sasp) - 8


class TestCommand:
    """The server as it is run, and what it says of those who do not belong to the job."""

    def start(self, *options: str) -> tuple[subprocess.Popen[str], int]:
        process = subprocess.Popen(
            [sys.executable, "-m", "sasp", "--listen", "127.0.0.1:0", *options],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        return process, int(process.stderr.readline().rsplit(" ", 1)[1])

    def join(self, port: int, rank: int = 0, **options: object) -> tuple[nn.Module, torch.optim.Optimizer]:
        model = make_model()
        optimizer = options.pop("optimizer", make_optimizer)(model)
        options.setdefault("scheme", "bsp+sasp")
        return sasp.join(
            model, optimizer, server=("127.0.0.1", port), rank=rank, patience=10, chunk_bytes=1024, **options
        )

    def test_one_job_from_beginning_to_end_among_strangers(self, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("secret\n")
        process, port = self.start("--workers", "1", "--scheme", "bsp+sasp", "--token-file", str(token))
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n")
            stranger.settimeout(10)
            assert b"no message of this protocol" in stranger.recv(1000)
        silent = socket.create_connection(("127.0.0.1", port))
        for options, why in (
            ({"token": "wrong"}, "token is wrong"),
            ({"token": "secret", "scheme": "asp"}, "started with bsp"),
            ({"token": "secret", "rank": 5}, "its rank is 5; there are 0 to 0"),
        ):
            with pytest.raises(sasp.SaspError, match=why):
                self.join(port, **options)
        model, optimizer = self.join(port, token="secret")
        for iteration in range(3):
            x, y = batch(0, iteration)
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        optimizer.close()
        _, said = process.communicate(timeout=20)
        silent.close()
        assert process.returncode == 0, said
        assert "Traceback" not in said

    def test_a_lost_worker_ends_the_job_for_all_with_its_name(self) -> None:
        process, port = self.start("--workers", "2", "--scheme", "ssp:1+sasp")
        joined: dict[int, tuple] = {}
        threads = [
            threading.Thread(target=lambda r=rank: joined.update({r: self.join(port, r, scheme="ssp:1+sasp")}))
            for rank in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        # Worker 1 goes without a word.
        transport = joined[1][1]._decoupled._transport
        transport._sock.shutdown(socket.SHUT_RDWR)
        model, optimizer = joined[0]
        with pytest.raises(sasp.SaspError, match="parameter server"):
            for iteration in range(5):
                x, y = batch(0, iteration)
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        _, said = process.communicate(timeout=20)
        assert process.returncode == 1
        assert "worker 1" in said
        assert "Traceback" not in said

    @pytest.mark.parametrize(("ends", "status"), [("raise OSError('no such picture')", 1), ("pass", 0)])
    def test_a_script_that_fails_is_a_lost_worker_and_one_that_forgets_to_close_is_done(
        self, ends: str, status: int
    ) -> None:
        process, port = self.start("--workers", "1")
        code = (
            "import torch\nimport sasp\n"
            "model = torch.nn.Linear(2, 2)\n"
            "made = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            f"model, optimizer = sasp.join(model, made, server=('127.0.0.1', {port}), rank=0)\n"
            f"model(torch.ones(1, 2)).sum().backward()\noptimizer.step()\n{ends}\n"
        )
        worker = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert worker.returncode == status, worker.stderr
        _, said = process.communicate(timeout=20)
        assert process.returncode == status
        assert ("worker 0 is done after 1 iterations; 0 go on" in said) == (status == 0)
        assert ("is lost: it closed the connection" in said) == (status == 1)

    def test_a_worker_that_does_not_come_is_named(self) -> None:
        process, _port = self.start("--workers", "2", "--patience", "0.5")
        _, said = process.communicate(timeout=20)
        assert process.returncode == 1
        assert "worker 0, 1 did not come within 0.5 s" in said

    def test_off_loopback_a_token_is_needed(self) -> None:
        found = subprocess.run(
            [sys.executable, "-m", "sasp", "--listen", "0.0.0.0:0", "--workers", "1"],
            cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert found.returncode == 1
        assert "give a token" in found.stderr

    def test_what_cannot_be_served_is_said_before_anything_is_sent(self) -> None:
        for make, why in (
            (lambda m: torch.optim.Rprop(m.parameters()), "cannot run Rprop"),
            (lambda m: torch.optim.SGD([{"params": [p]} for p in m.parameters()], lr=0.1), "several parameter groups"),
        ):
            with pytest.raises(sasp.SaspError, match=why):
                self.join(1, optimizer=make)
        model = make_model()
        with pytest.raises(sasp.SaspError, match="does not answer"):
            sasp.join(model, make_optimizer(model), server=("127.0.0.1", 1), rank=0, patience=0.1)
