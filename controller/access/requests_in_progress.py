"""Limits the requests that one caller has in progress, so that no token takes all connections. Pure.

A request is in progress while its body comes, and while it waits for a plan: a minute at most, whatever the caller's
machine does. Operators are not limited: all agents may have the operator's token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from controller.access.caller import Caller, Role

MOST = 128
"""Refuse a further request of a caller that has this many in progress. An agent has two at a time."""


class RequestsInProgress:
    """Counts the requests in progress by caller."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._callers: Counter[Caller] = Counter()

    def is_full(self, caller: Caller) -> bool:
        """Returns whether a caller has as many requests in progress as it may have."""
        return caller.role is not Role.OPERATOR and self._callers[caller] >= self._most

    @contextmanager
    def of(self, caller: Caller) -> Iterator[None]:
        """Count one more request of a caller as long as this is held."""
        self._callers[caller] += 1
        try:
            yield
        finally:
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]
