"""Requests' bodies at the API: their types, their sizes, how they come, and what is no HTTP at all."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from controller.wire import MAX_BODY_BYTES
from evaluation.bench.support.api_client import OPERATOR, Controller
from tests.support.controller.api.cases import assert_problem


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("bodies")).start()
    yield controller
    controller.stop()


def test_media_types(yard: Controller) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        reply = yard.call("PUT", "/v1/jobs/bad", data="{}", headers={"Content-Type": kind})
        assert_problem(reply, 415, "content type")
    packed = yard.call(
        "PUT", "/v1/jobs/bad", data="{}", headers={"Content-Type": "application/json", "Content-Encoding": "gzip"}
    )
    assert_problem(packed, 415, "compressed")


def test_a_body_of_10_mb_is_refused_by_its_length(yard: Controller) -> None:
    reply = yard.call("PUT", "/v1/jobs/big", data=b"x" * (10 * 2**20), headers={"Content-Type": "application/json"})
    assert_problem(reply, 413, str(MAX_BODY_BYTES))
    head = (
        f"PUT /v1/jobs/big HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OPERATOR}\r\n"
        "Content-Type: application/json\r\nContent-Length: 10485760\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", yard.port), 5) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413"), "it must not wait for the body"


def chunked(yard: Controller, chunks: Any) -> Any:
    return yard.call("PUT", "/v1/jobs/chunks", data=chunks, headers={"Content-Type": "application/json"})


def test_chunked_bodies_are_bounded(yard: Controller) -> None:
    assert chunked(yard, iter([b'{"weight"', b": 2.5}"])).json()["spec"]["weight"] == 2.5
    assert yard.call("DELETE", "/v1/jobs/chunks").status_code == 204
    assert_problem(chunked(yard, (b" " * 65536 for _ in range(160))), 413, "larger than")
    head = (
        f"PUT /v1/jobs/c HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OPERATOR}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: "
    ).encode()
    assert yard.raw(head + b"chunked\r\n\r\n" + b"1" * (6 * 2**20)).startswith(b"HTTP/1.1 400")
    assert yard.raw(head + b"chunked\r\n\r\nzz\r\n").startswith(b"HTTP/1.1 400")
    assert yard.raw(head + b"gzip, chunked\r\n\r\n").startswith(b"HTTP/1.1 501")


@pytest.mark.parametrize(
    "body",
    [
        b"Transfer-Encoding: chunked\r\n\r\n" + b"40000\r\n" + b"x" * 0x40000 + b"\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * (6 * 2**20),
        b"Content-Length: 1000000\r\n\r\n{}",
        b"Content-Length: 1000\r\n\r\n{}",
    ],
    ids=["chunks", "no chunks", "much", "little"],
)
def test_a_body_that_nobody_asked_for_is_not_waited_for(yard: Controller, body: bytes) -> None:
    answer = yard.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == 1
    assert (b"\r\nconnection: close\r\n" in answer.lower()) is (b": 1000\r" not in body), "who is to end is told"
    assert "Traceback" not in yard.log()


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunks"])
def test_who_sends_a_body_that_is_not_read_may_ask_again(yard: Controller, is_chunked: bool) -> None:
    for _ in range(20):
        data = iter([b"{", b"}"]) if is_chunked else b"{}"
        reply = yard.call("PUT", "/v1/jobs/-bad", data=data, headers={"Content-Type": "application/json"})
        assert_problem(reply, 422, "is no name")


def test_a_chunked_body_that_was_read_leaves_the_connection(yard: Controller) -> None:
    put = (
        f"PUT /v1/jobs/chunks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OPERATOR}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    )
    answers = yard.raw((put + "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").encode())
    assert answers.count(b"HTTP/1.1 20") == 2


def assert_raw_problem(answer: bytes, status: int, said: str) -> None:
    head, _, rest = answer.partition(b"\r\n\r\n")
    first, *headers = head.decode().split("\r\n")
    assert first.split()[:2] == ["HTTP/1.1", str(status)]
    assert {"Content-Type: application/problem+json", f"Content-Length: {len(rest)}"} <= set(headers)
    problem = json.loads(rest)
    assert problem["status"] == status
    assert said in problem["detail"], problem


PUT = b"PUT /v1/jobs/odd HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
LONG = b"a" * 9000


@pytest.mark.parametrize(
    ("request_bytes", "status", "said"),
    [
        (b"HELLO\r\n\r\n", 400, "HELLO"),
        (b"GET /" + LONG + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "the request line has 8192 bytes or more"),
        (PUT + b"X-Long: " + LONG + b"\r\n\r\n", 431, "a header line has 8192 bytes or more"),
        (PUT + (b"X-Long: " + LONG[:1500] + b"\r\n") * 60 + b"\r\n", 431, "the headers have more than 65536 bytes"),
        (PUT + b"X-Short: a\r\n" * 200 + b"\r\n", 431, "there are more than 100 header lines"),
        (PUT + b"Content-Length: many\r\n\r\n", 400, "Content-Length is 'many'"),
        (PUT + b"Content-Length: -5\r\n\r\n", 400, "Content-Length is '-5'"),
        (PUT + b"Content-Length: 1_0\r\n\r\n", 400, "Content-Length is '1_0'"),
        (PUT + b"Content-Length: \r\n\r\n", 400, "Content-Length is ''"),
        (PUT + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400, "at most 18 digits"),
        (PUT + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "several values of Content-Length"),
        (
            PUT + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
            400,
            "Content-Length and Transfer-Encoding are there together",
        ),
    ],
    ids=lambda value: value[-30:].decode() if isinstance(value, bytes) else None,
)
def test_what_is_no_http_is_a_problem_too(yard: Controller, request_bytes: bytes, status: int, said: str) -> None:
    assert_raw_problem(yard.raw(request_bytes), status, said)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b'Content-Length: 100\r\n\r\n{"weight": 2', "the connection ended in the middle of the body"),
        (
            b'Transfer-Encoding: chunked\r\n\r\n64\r\n{"weight": 2',
            "the body cannot be read: the connection ended in the middle of a chunk",
        ),
    ],
)
def test_a_body_that_ends_too_soon(yard: Controller, sent: bytes, said: str) -> None:
    head = PUT + f"Authorization: Bearer {OPERATOR}\r\n".encode()
    assert_raw_problem(yard.raw(head + sent, ends=True), 400, said)
    assert yard.call("GET", "/v1/jobs/odd").status_code == 404
