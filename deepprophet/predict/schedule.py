"""One iteration of data-parallel training as tasks: a worker's operators in order, gradients beside them. Pure.

All workers do the same at the same time; the one that is shown is the slowest. A bucket is sent when its last gradient
is whole and the buckets before it have gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepprophet.predict.exchange import Transfer
from deepprophet.predict.tasks import Played, Task
from deepprophet.predict.tasks import play as play_tasks

DEVICE = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of a worker's own work: seconds, what it is, and the bucket that is whole at its end, if one is.

    ``reduced``: what must be on the wire after it, before the next piece begins.
    """

    name: str
    seconds: float
    bucket: int | None = None
    reduced: tuple[Transfer, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """An iteration: transfers before it, steps until all gradients are there, each bucket's transfers, steps after."""

    before: tuple[Transfer, ...]
    steps: tuple[Step, ...]
    buckets: tuple[tuple[Transfer, ...], ...]
    after: tuple[Step, ...]
    stretch: float = 1.0
    crowded: bool = False


def play(plan: Plan) -> Played:
    """Play an iteration through."""
    return play_tasks(tasks_of(plan), stretch=plan.stretch, crowded=plan.crowded)


def tasks_of(plan: Plan) -> list[Task]:
    """The tasks of an iteration."""
    tasks: list[Task] = []
    last = chained(tasks, "buffers", plan.before, ())
    whole: dict[int, int] = {}
    for step in plan.steps:
        tasks.append(Task(step.name, step.seconds, last, DEVICE))
        place = len(tasks) - 1
        last = chained(tasks, "reduction", step.reduced, (place,)) if step.reduced else ()
        if step.bucket is not None:
            whole[step.bucket] = place
    ends = [
        end
        for number, transfers in enumerate(plan.buckets)
        if number in whole
        for end in chained(tasks, f"bucket {number + 1}", transfers, (whole[number],), "bucket")
    ]
    for step in plan.after:
        tasks.append(Task(step.name, step.seconds, (*ends, *last), DEVICE))
        ends, last = [], ()
    return tasks


def chained(
    tasks: list[Task], name: str, transfers: Sequence[Transfer], after: tuple[int, ...], queue: str = ""
) -> tuple[int, ...]:
    """Add transfers, one after the other; return what waits for the last: ``after`` itself where there are none.

    The first of each chain are a queue, and so are the second, and so on.
    """
    for number, transfer in enumerate(transfers):
        tasks.append(
            Task(
                name,
                transfer.seconds,
                after,
                links=transfer.links,
                work=transfer.work,
                queue=f"{queue or name} {number}",
            )
        )
        after = (len(tasks) - 1,)
    return after
