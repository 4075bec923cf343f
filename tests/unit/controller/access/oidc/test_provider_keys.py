"""The keys of an identity provider: read once, kept, and read anew where a token needs it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import eventlet
import pytest

from controller.access.oidc.provider_keys import KEPT_SECONDS, RETRY_SECONDS, ProviderKeys, read
from tests.support.controller.tls.signer import jwk, key_set, rsa_key

ONE, OTHER = (key_set(jwk(rsa_key(), kid)) for kid in ("k1", "k2"))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Provider:
    def __init__(self) -> None:
        self.asked = 0
        self.text: bytes | None = ONE

    def __call__(self, _source: str) -> bytes:
        self.asked += 1
        if self.text is None:
            raise OSError("it is away")
        return self.text


def test_keys_are_read_once_and_kept() -> None:
    provider, clock = Provider(), Clock()
    keys = ProviderKeys("https://id", provider, clock)
    for _ in range(10):
        assert keys.for_key("k1").has("k1")
        clock.now += 100.0
    assert provider.asked == 1
    clock.now = KEPT_SECONDS
    provider.text = OTHER
    assert keys.for_key("k1").has("k1"), "nobody waits for the new ones"
    eventlet.sleep(0)
    assert not keys.for_key("k1").has("k1"), "a key that the provider has withdrawn ends"
    assert provider.asked == 2


def test_tokens_of_unknown_keys_have_the_provider_asked_now_and_then_only() -> None:
    provider, clock = Provider(), Clock()
    keys = ProviderKeys("https://id", provider, clock)
    for number in range(1000):
        clock.now = number * 0.1
        keys.for_key(f"made-up-{number}")
    assert provider.asked == 1 + int(99.9 / RETRY_SECONDS)
    provider.text = OTHER
    clock.now += RETRY_SECONDS
    assert keys.for_key("k2").has("k2"), "a key that the provider has changed to is found"


def test_a_provider_that_is_away_leaves_the_keys_of_before(caplog: pytest.LogCaptureFixture) -> None:
    provider, clock = Provider(), Clock()
    keys = ProviderKeys("https://id", provider, clock)
    keys.for_key("k1")
    provider.text = None
    clock.now = KEPT_SECONDS
    caplog.set_level(logging.ERROR)
    keys.for_key("k1")
    eventlet.sleep(0)
    assert keys.for_key("k1").has("k1")
    assert "the keys of api.oidc cannot be read from https://id: it is away" in caplog.text


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(ONE)
    assert ProviderKeys(str(tmp_path / "keys.json")).for_key("k1").has("k1")


class _Slow(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.5)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(ONE)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def slow() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Slow)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/keys"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_slow_provider_holds_up_nobody_else(slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    assert read(slow) == ONE
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while True:
            eventlet.sleep(0.01)
            ticks += 1

    ticking = eventlet.spawn(tick)
    assert ProviderKeys(slow).for_key("k1").has("k1")
    ticking.kill()
    assert ticks > 20, "others ran meanwhile"
