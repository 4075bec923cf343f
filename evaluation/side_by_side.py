"""Runs long pieces of work side by side. One signal ends them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event
from typing import TypeVar

from topologies.signals import held_off

Item = TypeVar("Item")
Result = TypeVar("Result")
Outcome = Callable[[], Result]
"""Returns the result of a piece of work, or raises the exception that ended it."""


def side_by_side(
    items: Sequence[Item],
    work: Callable[[Item], Result],
    done: Callable[[Item, Outcome[Result]], None],
    *,
    at_once: int,
    stop: Event,
) -> None:
    """Do ``work`` for each item, in ``at_once`` threads. This thread calls ``done`` with each outcome.

    With ``at_once`` 1 all work runs in this thread, where signals arrive. Any exception sets ``stop``, which must make
    ``work`` end soon. Work that has begun is waited for; the rest never begins.
    """
    if at_once == 1:
        for item in items:
            done(item, _attempt(work, item))
        return
    with ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(work, item): item for item in items}
        try:
            for future in as_completed(running):
                done(running[future], future.result)
        except BaseException:
            with held_off():
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
            raise


def _attempt(work: Callable[[Item], Result], item: Item) -> Outcome[Result]:
    return lambda: work(item)
