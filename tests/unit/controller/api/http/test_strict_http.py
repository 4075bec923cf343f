"""What is no HTTP by RFC 9112 is refused whole, over a real socket: the connection ends, and no byte after the fault is
run as a request of its own."""

from __future__ import annotations

import io
import json
import re
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import eventlet
import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controller.api.bodies import body
from controller.api.http import HttpError
from controller.api.http11 import head as http_head
from controller.api.http11.chunks import MAX_CHUNK_LINE, MAX_OVERHEAD, ChunkError, Chunks
from controller.api.http11.connection import Body
from controller.api.http11.head import MAX_FIELDS, MAX_HEAD, MAX_LINE, HeadError
from controller.steps import Pause
from evaluation.bench.support.api_client import OPERATOR, Controller


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("strict")).start()
    yield controller
    controller.stop()


NEXT = b"GET /healthz?second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
"""What must not be run after a fault."""
ANSWER = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")
TOKEN = b"Authorization: Bearer " + OPERATOR.encode() + b"\r\n"
JSON = b"Content-Type: application/json\r\n"
PUT = b"PUT /v1/jobs/odd HTTP/1.1\r\nHost: x\r\n" + TOKEN + JSON


def get(*lines: bytes, first: bytes = b"GET /healthz HTTP/1.1", host: bytes = b"Host: x") -> bytes:
    return b"\r\n".join([first, *([host] if host else []), *lines, b"", b""])


def put(*lines: bytes, body: bytes = b"{}") -> bytes:
    return PUT + b"\r\n".join([*lines, b"", b""]) + body


def chunked(chunks: bytes) -> bytes:
    return put(b"Transfer-Encoding: chunked", body=chunks)


def sized(body: bytes) -> bytes:
    return b"Content-Length: %d" % len(body)


HEADS = [
    # Names and colons
    (put(b"Content-Length : %d" % len(NEXT)), 400, "white space between 'Content-Length' and its colon"),
    (put(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"), 400, "white space between 'Transfer-Encoding'"),
    (put(b"Content-Length\t: %d" % len(NEXT)), 400, "white space between 'Content-Length' and its colon"),
    (get(b"no colon here"), 400, "header line 2 is 'no colon here'; it has no colon"),
    (get(b": nameless"), 400, "header line 2 has the name ''"),
    (get(b"X(Y): 1"), 400, "has the name 'X(Y)'"),
    (get(b"X\x00Y: 1"), 400, "has the name 'X\\x00Y'"),
    (get(b"X\xe9: 1"), 400, "has the name 'X\\xe9'"),
    (get(b"X\x0b: 1"), 400, "has the name 'X\\x0b'"),
    # Values
    (get(b"X: a\x00b"), 400, "has the byte 0x00"),
    (get(b"X: a\x1bb"), 400, "has the byte 0x1b"),
    (get(b"X: a\x7fb"), 400, "has the byte 0x7f"),
    (get(b"X: a\rContent-Length: 5"), 400, "has the byte 0x0d"),
    # Lines
    (get(b"X: a", b" folded"), 400, "header line 3 begins with white space"),
    (get(b"X: a", b"\tfolded"), 400, "header line 3 begins with white space"),
    (b"GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n", 400, "header line 1 begins with white space"),
    (b"GET /healthz HTTP/1.1\nHost: x\r\n\r\n", 400, "ends with a line feed alone"),
    (b"GET /healthz HTTP/1.1\r\nHost: x\n\r\n", 400, "ends with a line feed alone"),
    (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\n", 400, "ends with a line feed alone"),
    (b"\n" + get(), 400, "ends with a line feed alone"),
    (b"\r\n\r\n" + get(), 400, "the request line is ''"),
    # The request line
    (get(first=b" GET /healthz HTTP/1.1"), 400, "the request line is ' GET"),
    (get(first=b"GET  /healthz HTTP/1.1"), 400, "the request line"),
    (get(first=b"GET /healthz  HTTP/1.1"), 400, "the request line"),
    (get(first=b"GET\t/healthz HTTP/1.1"), 400, "the request line"),
    (get(first=b"GET /healthz HTTP/1.1 "), 400, "the request line"),
    (get(first=b"GET /healthz\rHTTP/1.1"), 400, "the request line"),
    (get(first=b"GET /healthz"), 400, "the request line"),
    (get(first=b"G@T /healthz HTTP/1.1"), 400, "the request line"),
    (get(first=b"G(T /healthz HTTP/1.1"), 400, "the request line"),
    (get(first=b"GET /healthz HTTP/1.1x"), 400, "the request line"),
    (get(first=b"GET /healthz HTTP/1.10"), 400, "the request line"),
    (get(first=b"GET /healthz HTTP/01.1"), 400, "the request line"),
    (get(first=b"GET /healthz http/1.1"), 400, "the request line"),
    (get(first=b"GET /healthz HTTP/1"), 400, "the request line"),
    (get(first=b"GET /healthz HTTP/2.0"), 505, "HTTP/2.0 is not spoken here; HTTP/1.1 is"),
    (get(first=b"GET /healthz HTTP/0.9"), 505, "HTTP/0.9 is not spoken here"),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/2.0 is not spoken here"),
    # The target
    (get(first=b"GET /healthz#part HTTP/1.1"), 400, "the target is '/healthz#part'"),
    (get(first=b"GET /a b HTTP/1.1"), 400, "the request line"),
    (get(first=b"GET /healthz\x01 HTTP/1.1"), 400, "the request line"),
    (get(first=b"GET /caf\xc3\xa9 HTTP/1.1"), 400, "the request line"),
    (get(first=b"GET /100% HTTP/1.1"), 400, "the target is '/100%'"),
    (get(first=b"GET /%zz HTTP/1.1"), 400, "the target is '/%zz'"),
    (get(first=b'GET /"quoted" HTTP/1.1'), 400, "the target is"),
    (get(first=b"GET healthz HTTP/1.1"), 400, "the target is 'healthz'"),
    (get(first=b"GET * HTTP/1.1"), 400, "the target is '*'"),
    (get(first=b"GET x:80 HTTP/1.1"), 400, "the target is 'x:80'"),
    (get(first=b"CONNECT /healthz HTTP/1.1"), 400, "the target is '/healthz'"),
    (get(first=b"GET ftp://x/healthz HTTP/1.1"), 400, "the target is 'ftp://x/healthz'"),
    (get(first=b"GET http:///healthz HTTP/1.1"), 400, "the target is 'http:///healthz'"),
    (get(first=b"GET http://me@x/healthz HTTP/1.1"), 400, "the target is 'http://me@x/healthz'"),
    # Host
    (get(host=b""), 400, "there is no Host"),
    (get(b"Host: x"), 400, "there are several values of Host"),
    (get(host=b"Host: x y"), 400, "Host is 'x y'"),
    (get(host=b"Host: http://x"), 400, "Host is 'http://x'"),
    (get(host=b"Host: x:port"), 400, "Host is 'x:port'"),
    (get(host=b"", first=b"GET http://x/healthz HTTP/1.1"), 400, "there is no Host"),
    # Where the body ends
    (put(b"Transfer-Encoding: xchunked"), 400, "Transfer-Encoding is 'xchunked'"),
    (put(b"Transfer-Encoding: identity"), 400, "Transfer-Encoding is 'identity'"),
    (put(b"Transfer-Encoding: chunked, gzip"), 400, "Transfer-Encoding is 'chunked, gzip'"),
    (put(b"Transfer-Encoding: chunked, chunked"), 400, "Transfer-Encoding is 'chunked, chunked'"),
    (put(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), 400, "Transfer-Encoding is 'chunked,chunked'"),
    (put(b"Transfer-Encoding: chunked;q=1"), 400, "Transfer-Encoding is 'chunked;q=1'"),
    (put(b"Transfer-Encoding:"), 400, "Transfer-Encoding is ''"),
    (put(b"Transfer-Encoding: \x0bchunked"), 400, "has the byte 0x0b"),
    (put(b"Transfer-Encoding: \x85chunked"), 400, "Transfer-Encoding is '\\x85chunked'"),
    (put(b"Transfer-Encoding: chunked\xa0"), 400, "Transfer-Encoding is 'chunked\\xa0'"),
    (put(b"Transfer-Encoding: gzip, chunked"), 501, "transfer coding 'gzip' is not spoken here"),
    (put(b"Transfer-Encoding: chunked", b"Content-Length: 2"), 400, "are there together"),
    (
        PUT.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "HTTP/1.0 has no Transfer-Encoding",
    ),
    (put(b"Content-Length: 2", b"Content-Length: 2"), 400, "several values of Content-Length"),
    (put(b"Content-Length: 2, 2"), 400, "Content-Length is '2, 2'"),
    (put(b"Content-Length: +2"), 400, "Content-Length is '+2'"),
    (put(b"Content-Length: 0x2"), 400, "Content-Length is '0x2'"),
    (put(b"Content-Length: 2 "[:-1] + b"\xb2"), 400, "Content-Length is '2\\xb2'"),
    (put(b"Content-Length: 2", JSON[:-2]), 400, "several values of Content-Type"),
    (put(b"Content-Length: 2", TOKEN[:-2]), 400, "several values of Authorization"),
    # Expectations
    (put(b"Content-Length: 2", b"Expect: 200-ok"), 417, "Expect is '200-ok'; 100-continue is all"),
    (put(b"Content-Length: 2", b"Expect: 100-continue, more"), 417, "Expect is '100-continue, more'"),
    # Sizes
    (get(*[b"X: 1"] * MAX_FIELDS), 431, "there are more than 100 header lines"),
    (get(b"X: " + b"a" * MAX_LINE), 431, "a header line has 8192 bytes or more"),
    (get(*[b"X: " + b"a" * 8000] * 9), 431, "the headers have more than 65536 bytes together"),
    (get(first=b"GET /" + b"a" * MAX_LINE + b" HTTP/1.1"), 414, "the request line has 8192 bytes or more"),
]

BODIES = [
    (b"0x2\r\n{}\r\n0\r\n\r\n", "a chunk begins with '0x2\\r\\n'"),
    (b"1_0\r\n{}" + b" " * 14 + b"\r\n0\r\n\r\n", "a chunk begins with '1_0\\r\\n'"),
    (b"+2\r\n{}\r\n0\r\n\r\n", "a chunk begins with '+2\\r\\n'"),
    (b"-2\r\n{}\r\n0\r\n\r\n", "a chunk begins with '-2\\r\\n'"),
    (b" 2\r\n{}\r\n0\r\n\r\n", "a chunk begins with ' 2\\r\\n'"),
    (b"2 \r\n{}\r\n0\r\n\r\n", "a chunk begins with '2 \\r\\n'"),
    (b"\r\n2\r\n{}\r\n0\r\n\r\n", "a chunk begins with '\\r\\n'"),
    (b"2\n{}\r\n0\r\n\r\n", "a chunk begins with '2\\n'"),
    (b"2\r{}\r\n0\r\n\r\n", "a chunk begins with '2\\r{}\\r\\n'"),
    (b"2;a=\x00\r\n{}\r\n0\r\n\r\n", "a chunk begins with '2;a=\\x00"),
    (b"2;a=b\rc\r\n{}\r\n0\r\n\r\n", "a chunk begins with '2;a=b\\rc"),
    (b"2;\r\n{}\r\n0\r\n\r\n", "a chunk begins with '2;"),
    (b"0" * 17 + b"2\r\n{}\r\n0\r\n\r\n", "a chunk begins with '00000000"),
    (b"2;a=" + b"b" * MAX_CHUNK_LINE + b"\r\n{}\r\n0\r\n\r\n", "a line between its chunks has 4096 bytes or more"),
    (b"2\r\n{}\n0\r\n\r\n", "a chunk is followed by '\\n0'"),
    (b"2\r\n{}}\r\n0\r\n\r\n", "a chunk is followed by '}\\r'"),
    (b"2\r\n{}0\r\n\r\n", "a chunk is followed by '0\\r'"),
    (b"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n", "Content-Length stands after the body"),
    (b"2\r\n{}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding stands after the body"),
    (b"2\r\n{}\r\n0\r\nno colon\r\n\r\n", "it has no colon"),
    (b"2\r\n{}\r\n0\r\nX : 1\r\n\r\n", "white space between 'X' and its colon"),
    (b"2\r\n{}\r\n0\r\nX: 1\n\r\n", "does not end with CR LF"),
]


def refused(answer: bytes, status: int, said: str) -> None:
    """The only answer is this problem, and it tells that the connection ends."""
    assert len(ANSWER.findall(answer)) == 1, f"a second request was run: {answer!r}"
    head, _, rest = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0].split()[1] == str(status), answer
    assert {"Content-Type: application/problem+json", "Connection: close"} <= set(lines)
    problem = json.loads(rest)
    assert problem["status"] == status
    assert said in problem["detail"], problem


def name_of(value: object) -> str | None:
    return ascii(value[-60:]) if isinstance(value, bytes) else None


@pytest.mark.parametrize(("sent", "status", "said"), HEADS, ids=name_of)
def test_a_head_that_is_no_http_is_refused_with_all_after_it(
    yard: Controller, sent: bytes, status: int, said: str
) -> None:
    refused(yard.raw(sent + NEXT), status, said)
    assert "Traceback" not in yard.log()


@pytest.mark.parametrize(("chunks", "said"), BODIES, ids=name_of)
def test_chunks_that_are_no_http_are_refused_with_all_after_them(yard: Controller, chunks: bytes, said: str) -> None:
    refused(yard.raw(chunked(chunks) + NEXT), 400, said)
    assert yard.call("GET", "/v1/jobs/odd").status_code == 404


def test_a_request_that_ends_amid_its_head_is_not_run(yard: Controller) -> None:
    assert yard.call("PUT", "/v1/jobs/kept", {}).status_code == 201
    for end in (b"", b"X: 1", b"X: 1\r\n"):
        sent = b"DELETE /v1/jobs/kept HTTP/1.1\r\nHost: x\r\n" + TOKEN + end
        refused(yard.raw(sent, ends=True), 400, "the connection ended in the middle of the head")
    assert yard.call("DELETE", "/v1/jobs/kept").status_code == 204


KEPT = [
    b"\r\n" + get(),
    get(host=b"Host:"),
    get(host=b"Host: [::1]:8080"),
    get(b"X:", b"X-Tab:\ta\tb\t", b"X-Latin: caf\xe9", b"x_y: 1"),
    get(*[b"X: 1"] * (MAX_FIELDS - 1)),
    get(first=b"GET /healthz HTTP/1.2"),
    get(first=b"GET /healthz?a=1&b=%20/?:@ HTTP/1.1"),
    get(first=b"GET http://x:80/healthz?a HTTP/1.1"),
    get(b"Content-Length: 002") + b"{}",
    get(b"Connection: Keep-Alive", first=b"GET /healthz HTTP/1.0"),
    put(sized(b"{}")),
    put(sized(b"{}"), b"Expect: 100-Continue"),
    put(b"TRANSFER-encoding:\t Chunked ", body=b'1;a;b=c;d="e\\"f"\r\n{\r\n1\r\n}\r\n00\r\nX: 1\r\n\r\n'),
]


@pytest.mark.parametrize("sent", KEPT, ids=name_of)
def test_what_is_http_is_answered_and_the_connection_goes_on(yard: Controller, sent: bytes) -> None:
    answer = yard.raw(sent + NEXT)
    assert [status[:1] for status in ANSWER.findall(answer) if status != b"100"] == [b"2", b"2"], answer
    yard.call("DELETE", "/v1/jobs/odd")


@pytest.mark.parametrize(
    "sent",
    [
        get(b"Connection: close"),
        get(b"Connection: x, Close"),
        get(first=b"GET /healthz HTTP/1.0"),
        get(first=b"GET /healthz HTTP/1.0", host=b""),
    ],
    ids=name_of,
)
def test_the_connection_ends_where_the_client_says_so(yard: Controller, sent: bytes) -> None:
    answer = yard.raw(sent + NEXT)
    assert ANSWER.findall(answer) == [b"200"]


def test_who_waits_to_send_a_body_is_told_to_go_on(yard: Controller) -> None:
    with socket.create_connection(("127.0.0.1", yard.port), 5) as client:
        client.sendall(PUT + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"{}" + NEXT)
        assert client.makefile("rb").read().count(b"HTTP/1.1 20") == 2
    with socket.create_connection(("127.0.0.1", yard.port), 5) as client:
        client.sendall(PUT.replace(TOKEN, b"") + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 401 "), "a body that will be refused is not asked for"
    old = PUT.replace(b"1.1", b"1.0") + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n{}"
    assert yard.raw(old).startswith(b"HTTP/1.1 20"), "HTTP/1.0 knows no 100"
    yard.call("DELETE", "/v1/jobs/odd")


# Against another parser ----------------------------------------------------------------------------------------------

# fmt: off
WORDS = st.sampled_from([
    b"GET", b"PUT", b"/", b"*", b"/a%20?b", b"http://x", b"HTTP/1.1", b"HTTP/1.0", b" ", b"\r\n", b"\n", b"\r", b"\t",
    b":", b"Host: x", b"Content-Length: 3", b"Content-Length:", b"Transfer-Encoding: chunked", b"Transfer-Encoding",
    b"chunked", b"Connection: close", b"Expect: 100-continue", b"\x00", b"\x85", b"\xff", b"a", b"0", b",", b"_",
])
CHUNK = st.sampled_from([
    b"3\r\nabc\r\n", b"3;a=b\r\nabc\r\n", b"0\r\n\r\n", b"0\r\nX: 1\r\n\r\n", b"00\r\n\r\n", b"\r\n", b"3", b"abc",
    b";", b"\t", b"0x3\r\nabc\r\n", b"+3\r\nabc\r\n", b"3 \r\nabc\r\n", b"3\nabc\n", b"3\r\nab\r\n",
])
# fmt: on
LINES = st.lists(WORDS, max_size=4).map(b"".join)
VALID = st.sampled_from([b"Host: x", b"Content-Length: 3", b"Transfer-Encoding: chunked", b"Accept: a", b"X: \xe9\t"])


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    """Heads that are right, or nearly so."""
    first = draw(st.sampled_from([b"GET / HTTP/1.1", b"PUT /a%20?b HTTP/1.1", b"GET http://x/a HTTP/1.0"]) | LINES)
    lines = draw(st.lists(VALID | LINES, max_size=4))
    head = bytearray(b"\r\n".join([first, b"Host: y", *lines, b"", b""]))
    for place, byte in draw(st.lists(st.tuples(st.integers(0, len(head) - 1), st.integers(0, 255)), max_size=2)):
        head[place] = byte
    return bytes(head)


CHUNKS = st.lists(CHUNK, max_size=4).map(b"".join)


@settings(max_examples=1500, deadline=None)
@given(head=heads(), body=CHUNKS)
@example(head=get(b"Transfer-Encoding: chunked"), body=b"3;a=b\r\nabc\r\n0\r\nX: 1\r\n\r\n")
@example(head=get(b"Content-Length: 3"), body=b"abc")
@example(head=get(b"Transfer-Encoding:\x85chunked"), body=b"3\r\nabc\r\n0\r\n\r\n")
def test_what_is_accepted_another_strict_parser_understands_alike(head: bytes, body: bytes) -> None:
    stream = io.BytesIO(head + body)
    try:
        found = http_head.parse(http_head.read(stream.readline))
        content = Chunks(stream).read(10**6) if found.length is None else stream.read(found.length)
    except (HeadError, ChunkError):
        return
    rest = stream.read()
    if found.length is not None and len(content) < found.length:
        return  # the connection ended too soon
    other = h11.Connection(h11.SERVER)
    other.receive_data((head + body).removeprefix(b"\r\n"))
    request = other.next_event()
    assert isinstance(request, h11.Request)
    assert (request.method.decode(), request.target.decode()) == (found.method, found.target)
    joined: dict[str, str] = {}
    for name, value in request.headers:
        key, text = name.decode(), value.decode("latin-1")
        joined[key] = f"{joined[key]},{text}" if key in joined else text
    # It writes what frames a body in its own way, which is the same in other words.
    assert {key: value.lower() for key, value in joined.items()} == {
        key: value.lower() for key, value in found.headers.items()
    }
    data = b""
    while isinstance(event := other.next_event(), h11.Data):
        data += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert data == content
    assert other.trailing_data[0] == rest, "both see the next request at the same byte"


@given(st.binary(max_size=200) | LINES)
def test_no_bytes_raise_anything_but_a_refusal(data: bytes) -> None:
    for head in (data, b"GET / HTTP/1.1\r\n" + data + b"\r\n\r\n"):
        stream = io.BytesIO(head)
        try:
            if read := http_head.read(stream.readline):
                http_head.parse(read)
        except HeadError as error:
            assert str(error).isprintable()
            assert len(str(error)) < 300
    try:
        Chunks(io.BytesIO(data)).read(10**6)
    except ChunkError as error:
        assert str(error).isprintable()


def test_a_body_of_tiny_chunks_is_bounded() -> None:
    tiny = b"1\r\na\r\n" * (MAX_OVERHEAD // 3 + 1)
    with pytest.raises(ChunkError, match="send larger chunks"):
        Chunks(io.BytesIO(tiny)).read(10**9)
    assert MAX_HEAD < MAX_OVERHEAD


def test_others_may_go_on_before_each_line_between_chunks() -> None:
    pauses: list[int] = []
    body = b"1\r\nx\r\n" * 1000 + b"0\r\n" + b"A: b\r\n" * 10 + b"\r\n"
    assert Chunks(io.BytesIO(body), lambda: pauses.append(1)).read(10**6) == b"x" * 1000
    assert len(pauses) == 1000 + 1 + 10 + 1


def tiny_chunks() -> tuple[Any, list[bool]]:
    """A body of 300,000 chunks that has come already, and where it is noted that its connection must end."""
    ends: list[bool] = []
    stream = io.BytesIO(b"1\r\n \r\n" * 300_000 + b"0\r\n\r\n")
    protocol: Any = SimpleNamespace(
        rfile=stream, wfile=None, connection=None, pause=Pause(), close_after=lambda: ends.append(True)
    )
    head = http_head.parse(b"DELETE /v1/jobs/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    return Body(protocol, head), ends


def test_the_deadline_of_a_body_ends_one_of_tiny_chunks_and_others_go_on_before() -> None:
    turns: list[int] = []

    def others() -> None:
        while True:
            turns.append(1)
            eventlet.sleep(0)

    beside = eventlet.spawn(others)
    try:
        with pytest.raises(HttpError) as late:
            body.read_raw({"CONTENT_TYPE": "application/json", "wsgi.input": tiny_chunks()[0]}, seconds=0.03)
    finally:
        beside.kill()
    assert late.value.status == 408
    assert len(turns) > 2


def test_tiny_chunks_that_nobody_asked_for_end_the_connection() -> None:
    unasked, ends = tiny_chunks()
    unasked.discard(seconds=0.03)
    assert ends == [True]
