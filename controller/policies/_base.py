"""The interface of a policy: values in, an ordering out; no state, no clock, no network."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from controller.model import Ordering, Snapshot


class OptionError(ValueError):
    """An option that is right in itself does not fit the snapshot; the message is for the operator, the option first.

    Raised by ``Policy.order`` alone: what can be told before that is a ``ValueError`` of the constructor.
    """


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
