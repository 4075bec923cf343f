"""The interface of a policy: values in, an ordering out; no state, no clock, no network."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from controller.model import Ordering, Snapshot


class OptionError(ValueError):
    """An option that is right in itself does not fit the snapshot; the message is for the operator, the option first.

    Raised by ``Policy.order`` alone: what can be told before that is a ``ValueError`` of the constructor.
    """


class DependsOn(Enum):
    """What the order of a policy depends on, from the least to the most. Each includes what stands before it."""

    NOTHING = "nothing"
    """All jobs stand in one band, whatever they are. The policy remembers and watches nothing."""

    ARRIVALS = "arrivals"
    """Of two jobs the order depends on their arrivals alone. When a job ends, all others stay in their bands and in
    their order. The policy remembers and watches nothing, and its order is never another because time has passed."""

    DECLARED = "declared"
    """The order depends on which jobs there are and what they declared (demand, tasks, weight, stage), and on time."""

    EVERYTHING = "everything"
    """The order depends on what jobs have done, too: what is left of them, what they have sent and reported."""


class Policy(ABC):
    """An ordering of jobs.

    A policy is constructed from its options (keyword arguments with defaults; a wrong one raises
    ``ValueError`` with a sentence for the operator) and is immutable afterwards. Every job of the snapshot
    stands in exactly one band of the answer and has a reason there.
    """

    name: ClassVar[str]
    reads_pairs: ClassVar[bool] = False
    """Whether the order depends on which host sends to which, not only on what each port and link carries.

    The controller always knows the pairs. The simulator shows such a policy every coflow's own flows, whole, with the
    share that is left as ``iterations_left``; any other what is left by port, in as few pairs as add up to that.
    """

    order_depends_on: ClassVar[DependsOn] = DependsOn.EVERYTHING
    """What the order depends on. A policy that declares less than everything is simulated faster.

    The simulator asks it only where its order can be another: never (``NOTHING``), when jobs come (``ARRIVALS``), or
    when jobs come and go and at ``Ordering.until`` (``DECLARED``); and it shows it every job as it was when it came.
    The controller asks every policy at every plan. It is declared in the class that has ``order``: a subclass with an
    ``order`` of its own depends on everything until it declares something else.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "order" in vars(cls) and "order_depends_on" not in vars(cls):
            cls.order_depends_on = DependsOn.EVERYTHING

    @abstractmethod
    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Order the jobs of ``snapshot``.

        ``previous`` is this policy's answer to the snapshot before (None at the start, or when another policy
        was active): its ``memory`` is all that a policy may remember. Raises OptionError.
        """

    def options(self) -> Mapping[str, object]:
        """The options in force, for ``explain`` and the journal."""
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}


def next_look(snapshot: Snapshot) -> float:
    """When an order by what jobs have left may be another, although none has come or gone: the end of the period.

    A job with one iteration left, as each coflow is, has nothing to do in between that it would be ordered anew by.
    """
    return snapshot.now + snapshot.period if any(job.iterations_left > 1 for job in snapshot.jobs) else math.inf
