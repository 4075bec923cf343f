"""Keeps the key set of an identity provider: read from a file or a URL, in a thread, and kept."""

from __future__ import annotations

import logging
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import eventlet
import eventlet.semaphore
import eventlet.tpool

from controller.access.oidc.key_set import KeySet, KeySetError
from controller.documents.regular_file import read_regular

LOG = logging.getLogger("trainyard.access")
KEPT_SECONDS = 3600.0
"""Read the keys again after this time, so that a key which the provider has withdrawn ends."""
RETRY_SECONDS = 30.0
"""Read the keys at most this often, whatever key ids tokens name: nobody may have the provider asked at will."""
ANSWER_SECONDS = 5.0
MAX_BYTES = 2**20


def read(source: str) -> bytes:
    """Returns the text of a key set. ``source``: an https or http URL, or the path of a file. Raises OSError."""
    if not source.startswith(("https://", "http://")):
        return read_regular(Path(source), most_bytes=MAX_BYTES)
    request = urllib.request.Request(source, headers={"Accept": "application/json"})  # noqa: S310 - only http and https come here
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - only http and https come here
        return bytes(answer.read(MAX_BYTES))


def _in_thread(source: str) -> bytes:
    """Returns what ``read`` does, while other green threads run."""
    text: bytes = eventlet.tpool.execute(read, source)
    return text


class ProviderKeys:
    """The key set of ``source``. ``fetch`` reads it; ``clock`` is in seconds and never goes back."""

    def __init__(
        self, source: str, fetch: Callable[[str], bytes] = _in_thread, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source = source
        self._fetch = fetch
        self._clock = clock
        self._keys = KeySet()
        self._asked_at: float | None = None
        self._turn = eventlet.semaphore.Semaphore()

    def for_key(self, kid: str | None) -> KeySet:
        """Returns the keys, read anew where they are old or do not have the key ``kid``, and never within 30 s.

        If they cannot be read, those of before stay. A request waits only where there is no key for it.
        """
        if not self._keys.has(kid):
            with self._turn:
                if not self._keys.has(kid) and self._age() >= RETRY_SECONDS:
                    self._read()
        elif self._age() >= KEPT_SECONDS:
            self._asked_at = self._clock()
            eventlet.spawn_n(self._read)
        return self._keys

    def _age(self) -> float:
        return float("inf") if self._asked_at is None else self._clock() - self._asked_at

    def _read(self) -> None:
        self._asked_at = self._clock()
        try:
            self._keys = KeySet.of(self._fetch(self._source))
        except (OSError, KeySetError, ValueError) as error:
            LOG.error("the keys of api.oidc cannot be read from %s: %s", self._source, error)
