"""Whose progress is read next. A user with many chatty logs delays the jobs of others by one turn at most. Pure."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

ROUND_SECONDS = 0.25
"""Read for so much processor time in one round; then the agent looks at all else, and the next round goes on."""

T = TypeVar("T")


class Turns(Generic[T]):
    """Rounds of jobs. In each one a job of each user has its turn, then another one of each, until the time is used.

    The next round begins behind the jobs, and behind the user, that had the last turns.
    """

    def __init__(
        self,
        user_of: Callable[[T], Hashable],
        *,
        round_seconds: float = ROUND_SECONDS,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """``clock`` counts the seconds of processor time that are used."""
        self._user_of, self._round_seconds, self._clock = user_of, round_seconds, clock
        self._until = float("-inf")
        self._users: list[Hashable] = []
        self._last: dict[Hashable, T] = {}

    def begin(self) -> None:
        """Begin a round."""
        self._until = self._clock() + self._round_seconds

    @property
    def is_over(self) -> bool:
        """Whether the time of the round is used."""
        return self._clock() >= self._until

    def of(self, jobs: Iterable[T]) -> Iterator[T]:
        """Yields jobs, each once, as long as the round has time; at least one."""
        waiting = self._waiting(jobs)
        users = deque(waiting)
        is_first = True
        while users and (is_first or not self.is_over):
            is_first = False
            user = users.popleft()
            job = waiting[user].popleft()
            if waiting[user]:
                users.append(user)
            self._last[user] = job
            self._users = [*(other for other in self._users if other != user), user]
            yield job

    def _waiting(self, jobs: Iterable[T]) -> dict[Hashable, deque[T]]:
        """Returns the jobs of each user, both in the order of their turns."""
        of_user: dict[Hashable, deque[T]] = {}
        for job in jobs:
            of_user.setdefault(self._user_of(job), deque()).append(job)
        self._users = [user for user in self._users if user in of_user]
        self._last = {user: self._last[user] for user in self._users}
        new = [user for user in of_user if user not in self._last]
        for user, last in self._last.items():
            if last in of_user[user]:
                of_user[user].rotate(-1 - of_user[user].index(last))
        return {user: of_user[user] for user in (*new, *self._users)}
