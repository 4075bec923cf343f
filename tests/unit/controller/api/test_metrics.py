"""What ``GET /metrics`` tells of the API itself: every answer is counted once, and the labels stay few."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import pytest

from evaluation.bench.support.api_client import HOST, OPERATOR, Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import spec


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("metrics")).start()
    yield controller
    controller.stop()


def samples(yard: Controller) -> dict[str, float]:
    found = {}
    for line in yard.call("GET", "/metrics").text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def requests(call: str, status: int) -> str:
    method, _, route = call.rpartition(" ")
    return f'trainyard_http_requests_total{{method="{method or "other"}",route="{route}",status="{status}"}}'


AUTH = b"Authorization: Bearer " + OPERATOR.encode() + b"\r\n"
PUT = b"PUT /v1/jobs/a HTTP/1.1\r\nHost: x\r\n" + AUTH + b"Content-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "call", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n", "refused", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", "refused", 414),
        (b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 101 + b"\r\n", "refused", 431),
        (PUT + b"Expect: more\r\n\r\n", "refused", 417),
        (PUT + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "refused", 501),
        (b"GET / HTTP/3.0\r\n\r\n", "refused", 505),
        (PUT + b"Content-Length: 9999999\r\n\r\n", "PUT /v1/jobs/{id}", 413),
        (PUT + b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n", "PUT /v1/jobs/{id}", 400),
        (b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n", "GET /v1/jobs", 401),
        (b"GET /no/such HTTP/1.1\r\nHost: x\r\n\r\n", "unknown", 401),
        (
            b"GET /v1/jobs HTTP/1.0\r\nAuthorization: Bearer " + HOST.encode() + b"\r\n\r\n",
            "GET /v1/jobs",
            403,
        ),
        (b"GET /no/such HTTP/1.0\r\n" + AUTH + b"\r\n", "unknown", 404),
        (b"BREW /v1/jobs HTTP/1.0\r\n" + AUTH + b"\r\n", "unknown", 405),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else None,
)
def test_what_is_refused_is_counted_by_its_status(yard: Controller, sent: bytes, call: str, status: int) -> None:
    before = samples(yard)
    assert yard.raw(sent).split()[1] == str(status).encode()
    after = samples(yard)
    changed = {
        name: after[name] - before.get(name, 0.0)
        for name in after
        if name.startswith("trainyard_http_requests_total") and after[name] != before.get(name)
    }
    assert changed.pop(requests("GET /metrics", 200)) == 1
    assert changed == {requests(call, status): 1}


def test_the_time_that_a_long_poll_is_held_back_is_no_duration(yard: Controller) -> None:
    wait_until(lambda: yard.call("GET", "/v1/hosts/h1/plan").status_code == 200)
    name = "trainyard_http_request_duration_seconds{}"
    call = name + '{{method="GET",route="/v1/hosts/{{host}}/plan",status_class="{}"}}'
    tag = yard.call("GET", "/v1/hosts/h1/plan").headers["ETag"]
    before = samples(yard)
    began = time.monotonic()
    assert yard.call("GET", "/v1/hosts/h1/plan?wait=0.5", headers={"If-None-Match": tag}).status_code == 304
    assert time.monotonic() - began > 0.5
    waiter = threading.Thread(
        target=lambda: yard.call("GET", "/v1/hosts/h1/plan?wait=10", headers={"If-None-Match": tag}, token=HOST)
    )
    waiter.start()
    time.sleep(0.5)
    yard.call("PUT", "/v1/jobs/polled", spec(5200))
    waiter.join()
    waited = time.monotonic() - began
    after = samples(yard)
    risen = {
        (part, status): after[name] - before.get(name, 0.0)
        for part in ("_count", "_sum")
        for status in ("2xx", "3xx")
        for name in [call.format(part, status)]
    }
    assert (risen["_count", "2xx"], risen["_count", "3xx"]) == (1, 1)
    assert risen["_sum", "2xx"] + risen["_sum", "3xx"] < waited / 2, "the two were held back nearly all of the time"
    assert after[f'{name.format("_count")}{{method="PUT",route="/v1/jobs/{{id}}",status_class="2xx"}}'] >= 1
    yard.call("DELETE", "/v1/jobs/polled")


def test_the_process_tells_of_itself(yard: Controller) -> None:
    found = samples(yard)
    assert yard.process is not None
    assert 20e6 < found["process_resident_memory_bytes"] < 2e9
    assert 0 < found["process_cpu_seconds_total"] < 600
    assert 5 < found["process_open_fds"] < found["process_max_fds"]
    assert abs(found["process_start_time_seconds"] - time.time()) < 600
    assert found['python_gc_collections_total{generation="2"}'] >= 0


def test_what_strangers_send_makes_no_new_series(yard: Controller) -> None:
    def ask(round_: int) -> None:
        for k in range(30):
            yard.call("GET", f"/no/such/{round_}-{k}")
            yard.call("GET", f"/v1/jobs/{round_}-{k}")
            yard.raw(f"M{k} /v1/jobs HTTP/1.{k % 10}\r\nX-{k}: 1\r\n\r\n".encode())

    ask(1)
    before = samples(yard).keys()
    ask(2)
    assert samples(yard).keys() == before
    labels = {match for name in before for match in re.findall(r'method="([^"]*)",route="([^"]*)"', name)}
    assert {("other", "refused"), ("other", "unknown")} < labels
    assert all(re.fullmatch(r"[A-Z]+ /[a-z0-9_/{}.]+|other (refused|unknown)", " ".join(label)) for label in labels)
