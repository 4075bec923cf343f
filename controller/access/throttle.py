"""Slows down addresses that send wrong tokens, and nobody else. Pure: the time comes in.

Each address has a bucket of BURST wrong tokens, which fills again by one each REFILL_SECONDS. While it is empty, the
tokens from this address are not looked at. So whoever guesses gets one guess a second, over however many connections,
and nothing waits or is held in memory for it. An IPv6 address counts as its /64, which one machine usually has whole.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

from controller.access.network import network_of

BURST = 30
REFILL_SECONDS = 1.0
MAX_ADDRESSES = 4096
"""Remember this many addresses. Beyond, the one that was heard of longest ago is forgotten."""
LOG_SECONDS = 60.0
MAX_LINES = 100
"""At most this many lines are due in a minute, whatever the number of addresses."""


@dataclass(slots=True)
class _Bucket:
    left: float
    as_of: float
    logged_at: float = -math.inf
    unlogged: int = 0


class Throttle:
    """The buckets of the addresses. Each ``now`` is in seconds, by a clock that never goes back."""

    def __init__(self, burst: int = BURST, max_addresses: int = MAX_ADDRESSES) -> None:
        self._burst = float(burst)
        self._max_addresses = max_addresses
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._minute, self._lines = -math.inf, 0

    def __len__(self) -> int:
        return len(self._buckets)

    def wait(self, address: str, now: float) -> float:
        """Returns for how many seconds no token from ``address`` is looked at; 0 where one is looked at now."""
        bucket = self._buckets.get(network_of(address))
        if bucket is None:
            return 0.0
        return max(0.0, (1.0 - self._level(bucket, now)) * REFILL_SECONDS)

    def wrong(self, address: str, now: float) -> None:
        """Note a wrong token from ``address``."""
        bucket = self._bucket(network_of(address), now)
        bucket.left = max(0.0, self._level(bucket, now) - 1.0)
        bucket.as_of = now

    def to_log(self, address: str, now: float) -> int | None:
        """Returns how many refusals of ``address`` a log line would stand for; None where none is due yet.

        To be called once a refusal. A line is due once a minute and address, and only so many in all.
        """
        bucket = self._bucket(network_of(address), now)
        bucket.unlogged += 1
        if now - bucket.logged_at < LOG_SECONDS:
            return None
        if now - self._minute >= LOG_SECONDS:
            self._minute, self._lines = now, 0
        if self._lines >= MAX_LINES:
            return None
        self._lines += 1
        count, bucket.unlogged, bucket.logged_at = bucket.unlogged, 0, now
        return count

    def _level(self, bucket: _Bucket, now: float) -> float:
        return min(self._burst, bucket.left + (now - bucket.as_of) / REFILL_SECONDS)

    def _bucket(self, network: str, now: float) -> _Bucket:
        bucket = self._buckets.get(network)
        if bucket is None:
            bucket = self._buckets[network] = _Bucket(self._burst, now)
            if len(self._buckets) > self._max_addresses:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(network)
        return bucket
