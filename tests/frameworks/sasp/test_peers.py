"""What a parameter server and its workers make of an end that says nonsense: one line, and nobody waits for ever."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import sasp
from sasp.core.errors import SaspError
from sasp.exchange import frames, rules
from sasp.exchange.frames import Frame, Kind, json_message, pack, receive
from sasp.server.server import MAX_STRANGERS, Server, listen
from sasp.training.transports.greeting import meet

HELLO = {
    "version": frames.VERSION, "rank": 0, "token": "", "scheme": "asp+sasp", "type": "float32", "chunk_bytes": 1024,
    "layers": [4, 6], "optimizer": "SGD", "options": {"lr": 0.1},
    "late": {"delay_compensation": 0.0, "rates": "plain"},
}  # fmt: skip
DEEP = "[" * 500 + "]" * 500


@contextlib.contextmanager
def serving(workers: int = 1) -> Iterator[tuple[Server, tuple[str, int], list[str]]]:
    """A server, where it is, and what it ends with."""
    ends: list[str] = []
    with listen("127.0.0.1", 0, workers) as listener:
        server = Server(listener, workers, sasp.parse("asp+sasp"), token="", patience=20)

        def run() -> None:
            try:
                server.run()
                ends.append("")
            except SaspError as error:
                ends.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        yield server, listener.getsockname(), ends
        thread.join(20)
        assert not thread.is_alive()


def said_to(address: tuple[str, int], *parts: bytes) -> str:
    """The line with which a server sends somebody away."""
    with socket.create_connection(address) as sock:
        sock.settimeout(20)
        sock.sendall(b"".join(parts))
        while True:
            frame, body = receive(sock)
            if frame.kind is Kind.REFUSED:
                return body.decode()


def hello(**changes: object) -> bytes:
    return json_message(Kind.HELLO, HELLO | changes)


def raw(kind: Kind, body: bytes) -> bytes:
    return pack(Frame(kind, len(body))) + body


def layers() -> bytes:
    return b"".join(pack(Frame(Kind.LAYER, 4 * n, i)) + bytes(4 * n) for i, n in enumerate(HELLO["layers"]))


def ready() -> bytes:
    return hello() + layers() + json_message(Kind.ORDER, [0, 1])


def push(chunk: int = 0, iteration: int = 1, rate: float = 0.1, late: int = 0) -> bytes:
    return pack(Frame(Kind.PUSH, 16, chunk, iteration, rate, late)) + struct.pack("4f", 1, 2, 3, 4)


def reason(value: object) -> str:
    """What a case is called: bytes would make no name."""
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (raw(Kind.HELLO, b"{"), "its HELLO is not understood"),
        (raw(Kind.HELLO, b"\xff\xfe\x00"), "its HELLO is not understood"),
        (raw(Kind.HELLO, b"[" * 100_000), "its HELLO is not understood"),
        (raw(Kind.HELLO, DEEP.encode()), "its HELLO is not understood"),
        (json_message(Kind.HELLO, {"rank": 0}), "its HELLO is not understood"),
        (hello(version=10**400), "it speaks version 1000"),
        (hello(version=json.loads(DEEP)), "it speaks version [[[["),
        (hello(rank="0"), "its rank is '0'; there are 0 to 0"),
        (hello(rank=True), "its rank is True"),
        (hello(rank=10**400), "its rank is 1000"),
        (hello(type="complex64"), "of type 'complex64'"),
        (hello(chunk_bytes=10**400), "its chunks have 1000"),
        (hello(chunk_bytes=1e4), "its chunks have 10000.0"),
        (hello(layers=7), "its HELLO is not understood"),
        (hello(layers=[]), "its layers are not understood"),
        (hello(layers=[10**400]), "its layers are not understood"),
        (hello(layers=[2**35]), "its layers are not understood"),
        (hello(layers=[4.0]), "its layers are not understood"),
        (hello(optimizer=json.loads(DEEP)), "an optimiser called [[[["),
        (hello(options={"lr": 10**400}), "lr of SGD is 1000"),
        (hello(options={"lr": json.loads(DEEP)}), "lr of SGD is [[[["),
        (hello(late=None), "about late gradients is not understood"),
        (hello(late={"delay_compensation": 0.0, "rates": json.loads(DEEP)}), "late gradients is not understood"),
        (hello(late={"delay_compensation": 10**400, "rates": "gap"}), "delay_compensation is 1000"),
        (hello(late={"delay_compensation": 0.0, "rates": "late"}), "rates is 'late'; choose from plain, staleness"),
    ],
    ids=reason,
)  # fmt: skip
def test_a_greeting_that_is_none_is_refused_and_the_job_waits_on(sent: bytes, why: str) -> None:
    with serving() as (_, address, ends):
        said = said_to(address, sent)
        assert why in said
        assert len(said) < 300
        assert not ends
        with socket.create_connection(address) as sock:
            sock.sendall(hello() + json_message(Kind.DONE, None))
    assert "worker 0 (" in ends[0]
    assert "done before it had sent the parameters" in ends[0]


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (raw(Kind.ORDER, b"[0,"), "its ORDER is not understood"),
        (raw(Kind.ORDER, b"[" * 100_000), "its ORDER is not understood"),
        (json_message(Kind.ORDER, {"0": 1}), "its ORDER is not understood"),
        (json_message(Kind.ORDER, [0, "1"]), "its ORDER is not understood"),
        (json_message(Kind.ORDER, [False, True]), "its ORDER is not understood"),
        (json_message(Kind.ORDER, [0, 10**400]), "its order is not one of 2 layers"),
        (json_message(Kind.ORDER, [0]), "its order is not one of 2 layers"),
        (json_message(Kind.ORDER, [0, 1]) * 2, "it sent ORDER where that makes no sense"),
        (push(), "it sent chunk 0, which there is not"),
        (json_message(Kind.ORDER, [0, 1]) + push(chunk=2), "it sent chunk 2, which there is not"),
        (json_message(Kind.ORDER, [0, 1]) + push(chunk=1), "it sent 16 bytes where 24 were due"),
        (json_message(Kind.ORDER, [0, 1]) + push(iteration=2), "sent iteration 2 of chunk 0 after 0"),
        (json_message(Kind.ORDER, [0, 1]) + push(rate=float("nan")), "with a learning rate of nan"),
        (json_message(Kind.ORDER, [0, 1]) + push(rate=float("inf")), "with a learning rate of inf"),
        (json_message(Kind.ORDER, [0, 1]) + push(rate=1e300), "cannot be applied with a learning rate of 1e+300"),
        (
            json_message(Kind.ORDER, [0, 1]) + push(late=1),
            "gradients of chunk 0 lack 1 iterations; at most 0 are allowed",
        ),
        (pack(Frame(Kind.FRESH, 0)), "it sent FRESH where that makes no sense"),
    ],
    ids=reason,
)
def test_a_worker_that_talks_nonsense_ends_the_job_with_its_name_and_one_line(sent: bytes, why: str) -> None:
    with serving(2) as (_, address, ends), socket.create_connection(address) as other:
        other.settimeout(20)
        other.sendall(hello(rank=1))
        with socket.create_connection(address) as sock:
            sock.sendall(hello() + layers() + sent)
            while (found := receive(other))[0].kind is not Kind.REFUSED:
                pass
    assert "worker 0 (" in ends[0]
    assert why in ends[0]
    assert "\n" not in ends[0]
    assert found[1].decode() == ends[0]


def test_another_workers_order_is_read_too() -> None:
    with serving(2) as (_, address, ends), socket.create_connection(address) as first:
        first.sendall(ready())
        with socket.create_connection(address) as sock:
            sock.settimeout(20)
            sock.sendall(hello(rank=1))
            while receive(sock)[0].chunk != 1:
                pass
            sock.sendall(raw(Kind.ORDER, b"nonsense"))
    assert "worker 1 (" in ends[0]
    assert "its ORDER is not understood" in ends[0]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("SGD", {"lr": 10**400}),
        ("SGD", {"lr": float("inf")}),
        ("SGD", {"lr": "0.1"}),
        ("SGD", {"lr": None}),
        ("SGD", {"lr": 0.1, "dampening": [0.1, 0.1]}),
        ("SGD", {"lr": 0.1, "weight_decay": 10**400}),
        ("SGD", {"lr": -1}),
        ("Adam", {"lr": 0.1, "betas": [0.9]}),
        ("Adam", {"lr": 0.1, "betas": 0.9}),
        ("Adam", {"lr": 0.1, "betas": [0.9, [0.9]]}),
        ("Adam", {"lr": 0.1, "betas": [0.9, 10**400]}),
        ("Adam", {"lr": 0.1, "betas": [0.9, 1.5]}),
        ("Adam", {"momentum": 0.1}),
        ("Adam", [0.1]),
    ],
)
def test_options_that_an_optimiser_cannot_have_are_refused(kind: str, options: object) -> None:
    with pytest.raises(SaspError, match=kind):
        rules.optimizer_factory(kind, options)


def test_options_that_are_whole_numbers_beyond_64_bits_do_not_fail_at_the_first_step() -> None:
    parameter = nn.Parameter(torch.ones(2))
    optimizer = rules.optimizer_factory("SGD", {"lr": 1, "weight_decay": 10**20, "nesterov": 0})(parameter)
    parameter.grad = torch.ones(2)
    optimizer.step()


def test_what_a_server_cannot_run_is_said_before_anything_is_sent() -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(SaspError, match="use AdamW"):
        rules.describe(torch.optim.Adam(model.parameters(), decoupled_weight_decay=True))
    with pytest.raises(SaspError, match="lr of SGD is inf"):
        rules.describe(torch.optim.SGD(model.parameters(), lr=float("inf")))


@contextlib.contextmanager
def false_server(*answers: bytes) -> Iterator[tuple[str, int]]:
    """Takes what one worker sends, and answers its HELLO, its ORDER and its first PUSH with these."""

    def run() -> None:
        sock, _ = listener.accept()
        with sock, contextlib.suppress(OSError, SaspError):
            left = list(answers)
            while True:
                frame, _ = receive(sock)
                if frame.kind in {Kind.HELLO, Kind.ORDER, Kind.PUSH} and left:
                    sock.sendall(left.pop(0))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        yield listener.getsockname()
        thread.join(20)
        assert not thread.is_alive()


WELCOME, ORDER = json_message(Kind.WELCOME, {"workers": 1}), json_message(Kind.ORDER, [0])


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([raw(Kind.WELCOME, b"{")], "its WELCOME is not understood"),
        ([raw(Kind.WELCOME, b"[" * 100_000)], "its WELCOME is not understood"),
        ([json_message(Kind.WELCOME, [1])], "its WELCOME is not understood"),
        ([json_message(Kind.WELCOME, {"workers": "1"})], "its WELCOME is not understood"),
        ([json_message(Kind.WELCOME, {"workers": -1})], "its WELCOME is not understood"),
        ([raw(Kind.REFUSED, b"\xff")], "refuses: "),
        ([WELCOME, raw(Kind.ORDER, b"[0")], "its ORDER is not understood"),
        ([WELCOME, json_message(Kind.ORDER, 0)], "its ORDER is not understood"),
        ([WELCOME, json_message(Kind.ORDER, [0.5])], "its ORDER is not understood"),
        ([WELCOME, raw(Kind.ORDER, b"[Infinity]")], "its ORDER is not understood"),
        ([WELCOME, json_message(Kind.ORDER, [10**400])], "its order is not one of 1 layers"),
        ([WELCOME, ORDER, raw(Kind.FRESH, b"")], "sent 0 bytes for a chunk of 24"),
        ([WELCOME, ORDER, raw(Kind.FRESH, b"12345")], "sent 5 bytes for a chunk of 24"),
        ([WELCOME, ORDER, pack(Frame(Kind.FRESH, 1 << 34))], "a message of 17179869184 bytes"),
        ([WELCOME, ORDER, pack(Frame(Kind.FRESH, 24, 7, 1)) + bytes(24)], "where parameters were due"),
        ([WELCOME, ORDER, pack(Frame(Kind.FRESH, 24, 0, 9)) + bytes(24)], "an answer to what was never sent"),
        ([WELCOME, ORDER, pack(Frame(Kind.FRESH, 24, 0, 0)) + bytes(24)], "an answer to what was never sent"),
        ([WELCOME, ORDER, b"GET / HTTP/1.1\r\nHost: somewhere"], "no message of this protocol"),
    ],
    ids=reason,
)
def test_a_server_that_talks_nonsense_is_an_error_in_the_training(answers: list[bytes], why: str) -> None:
    made = nn.Linear(2, 2)
    with false_server(*answers) as address, pytest.raises(SaspError, match=f"the parameter server at .*{why}"):
        model, optimizer = sasp.join(
            made, torch.optim.SGD(made.parameters(), lr=0.1), server=address, rank=0, patience=20
        )
        try:
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            optimizer.flush()
        finally:
            optimizer._decoupled._transport.close()


def test_a_server_that_never_answers_a_greeting_is_not_waited_for_for_ever() -> None:
    made = nn.Linear(2, 2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(SaspError, match="timed out"):
        sasp.join(made, torch.optim.SGD(made.parameters(), lr=0.1), server=silent.getsockname(), rank=0, patience=1)


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_a_worker_greets_again_where_the_connection_was_lost_before_the_answer(reset: bool) -> None:
    made, ends = nn.Linear(2, 2), []

    def run() -> None:
        for _ in range(2):
            sock, _ = listener.accept()
            receive(sock)
            if reset:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        Server(listener, 1, sasp.parse("asp+sasp"), token="", patience=20).run()
        ends.append("")

    with listen("127.0.0.1", 0, 1) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        _, optimizer = sasp.join(
            made, torch.optim.SGD(made.parameters(), lr=0.1), server=listener.getsockname(), rank=0, scheme="asp+sasp"
        )
        optimizer.close()
        thread.join(20)
    assert ends == [""]


def test_a_server_that_only_hangs_up_is_not_called_for_ever() -> None:
    made = nn.Linear(2, 2)

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                listener.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        with pytest.raises(SaspError, match=r"the parameter server at .* does not answer: "):
            sasp.join(
                made, torch.optim.SGD(made.parameters(), lr=0.1), server=listener.getsockname(), rank=0, patience=0.5
            )
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(20)
        assert not thread.is_alive()


def test_a_refusal_is_told_though_the_greeting_was_not_read() -> None:
    def run() -> None:
        sock, _ = listener.accept()
        sock.sendall(raw(Kind.REFUSED, b"too long"))
        # So much is on its way that the worker still sends when the connection is reset.
        time.sleep(0.5)
        sock.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run)
        thread.start()
        with pytest.raises(SaspError, match="refuses: too long"):
            meet(listener.getsockname(), bytes(64 * 2**20), patience=5)
        thread.join(20)


def test_many_workers_may_come_before_one_of_them_has_greeted() -> None:
    count = 200
    with serving(count) as (_, address, ends), contextlib.ExitStack() as stack:
        workers = [stack.enter_context(socket.create_connection(address)) for _ in range(count)]
        for rank, worker in enumerate(workers):
            worker.settimeout(20)
            worker.sendall(hello(rank=rank))
        assert {receive(worker)[0].kind for worker in workers} == {Kind.WELCOME}
    assert "it closed the connection" in ends[0]


def test_strangers_beside_the_workers_are_limited() -> None:
    with serving() as (server, address, ends), contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(socket.create_connection(address)) for _ in range(MAX_STRANGERS + 2)]
        strangers[-1].settimeout(20)
        assert strangers[-1].recv(1) == b""
        assert len(server._all) == MAX_STRANGERS + 1
        strangers[0].sendall(hello())
        assert receive(strangers[0])[0].kind is Kind.WELCOME
    assert "worker 0 (" in ends[0]


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="silence is noticed by Linux's means")
def test_both_ends_notice_when_the_other_falls_silent() -> None:
    made = nn.Linear(2, 2)
    with serving() as (server, address, ends):
        _, optimizer = sasp.join(
            made, torch.optim.SGD(made.parameters(), lr=0.1), server=address, rank=0, scheme="asp+sasp"
        )
        (theirs,) = (worker.sock for worker in server._all)
        for sock in (theirs, optimizer._decoupled._transport._sock):
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == frames.SILENCE_SECONDS * 1000
            asked = [
                sock.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            ]
            assert asked[0] + asked[1] * asked[2] == frames.SILENCE_SECONDS
        optimizer.close()
    assert ends == [""]
