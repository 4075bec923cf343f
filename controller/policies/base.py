"""The public interface of a policy: everything that a package needs to add one.

**What it gets.** ``Policy.order`` gets a ``Snapshot``: the hosts with the rates of their links, and the jobs with what
they declared (demand, tasks, weight, stage), what they reported and what is left of them. Times are in seconds, sizes
in bytes, rates in bit/s. Nothing else may decide: a policy reads no clock, no file and no network, and changes nothing
in the snapshot.

**What it returns.** An ``Ordering``: bands of job ids, first served first. The jobs of one band share the network.
Every job of the snapshot stands in exactly one band, and ``reasons`` has a sentence for it; otherwise ``PlanError``
refuses the plan. ``until`` and ``watch`` say when the order may change although no job comes or goes. ``predictions``
tell people when jobs are expected to reach their targets; they decide nothing.

**Options.** They are keyword arguments of the constructor. Annotate each with ``Number``, ``Whole``, ``Choice``,
``Truth`` or ``HostName``, and let it check the value. The error for a mistyped option then lists the options that
exist. A text after the kind in the annotation says what the option does; the reference of the policies shows it. Keep
the checked value in a public attribute of the same name, so that ``Policy.options`` can report it.

**Errors.** The constructor raises ``ValueError`` for a wrong option, with a sentence for the operator. ``order`` raises
``OptionError`` for an option that does not fit the snapshot, such as a host that does not exist.

**Memory.** A policy is immutable after its construction, and keeps no state. What it must remember it returns in
``Ordering.memory``, which maps texts to numbers. It gets that back in ``previous`` with the next snapshot, also after a
restart of the controller.

A whole policy, which serves the smallest jobs first:

>>> from typing import Annotated
>>> from controller.model import Demand, Host, Job, Ordering, Snapshot
>>> class SmallestFirst(Policy):
...     'One job in each band; the fewest bytes of an iteration, rounded to ``unit_bytes``, go first.'
...     name = "smallest-first"
...     def __init__(self, unit_bytes: Annotated[float, Number(1.0), "Sizes are rounded to this."] = 1e6) -> None:
...         self.unit_bytes = Number(1.0).check("unit_bytes", unit_bytes)
...     def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
...         units = {job.id: round(sum(flow.bytes for flow in job.demand) / self.unit_bytes) for job in snapshot.jobs}
...         reasons = {job: f"sends {count} units in an iteration" for job, count in units.items()}
...         return Ordering(self.name, tuple((job,) for job in sorted(units, key=units.__getitem__)), reasons)
>>> large, small = Job("large", (Demand("h1", "h2", 9e6),)), Job("small", (Demand("h1", "h2", 2e6),))
>>> ordering = SmallestFirst().order(Snapshot(0.0, {"h1": Host("h1"), "h2": Host("h2")}, (large, small)), None)
>>> ordering.bands, ordering.reasons["small"]
((('small',), ('large',)), 'sends 2 units in an iteration')
>>> SmallestFirst(unit_bytes="many")
Traceback (most recent call last):
ValueError: unit_bytes: 'many'; it must be a number from 1 to 1e+09

An installed package makes its policy known by an entry point of the group ``trainyard.policies``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from controller.model import Ordering, Snapshot
from controller.policies.parts.options import Choice, HostName, Number, Truth, Whole

__all__ = ["Choice", "DependsOn", "HostName", "Number", "OptionError", "Policy", "Truth", "Whole", "next_look"]


class OptionError(ValueError):
    """An option that is valid by itself does not fit the snapshot.

    The message is for the operator, and begins with the option's name. Only ``Policy.order`` raises it: the constructor
    raises ``ValueError`` for what can be checked without a snapshot.
    """


class DependsOn(Enum):
    """What the order of a policy depends on, from the least to the most. Each member includes those before it."""

    NOTHING = "nothing"
    """All jobs always stand in one band. The policy remembers and watches nothing."""

    ARRIVALS = "arrivals"
    """The order of two jobs depends only on their arrivals. When a job ends, all others stay in their bands and in
    their order. The policy remembers and watches nothing, and its order does not change with time."""

    DECLARED = "declared"
    """The order depends on which jobs there are and what they declared (demand, tasks, weight, stage), and on time."""

    EVERYTHING = "everything"
    """The order also depends on what jobs have sent and reported, and on how many iterations they have left."""


class Policy(ABC):
    """A rule that orders jobs. A subclass sets ``name`` and defines ``order``; the module says what both must do.

    The constructor takes the options as keyword arguments with defaults. It raises ValueError for a wrong one, with a
    sentence for the operator. A policy is immutable afterwards.
    """

    name: ClassVar[str]
    """The name in settings, commands and ``Ordering.policy``; it equals the name of the entry point."""

    reads_pairs: ClassVar[bool] = False
    """Says whether the order depends on which host sends to which, and not only on what each port and link carries.

    The controller always knows the pairs. The simulator shows such a policy all flows of every coflow with their full
    sizes, and the share that is left as ``iterations_left``. It shows any other policy what is left at each port, in as
    few flows as add up to that, which is much faster.
    """

    order_depends_on: ClassVar[DependsOn] = DependsOn.EVERYTHING
    """Says what the order depends on. A policy that declares less than everything is simulated faster.

    The simulator calls ``order`` only when the order can change: never (``NOTHING``), when jobs come (``ARRIVALS``), or
    when jobs come and go and at ``Ordering.until`` (``DECLARED``). It then shows every job as it was when it came. The
    controller calls ``order`` for every plan. The class that defines ``order`` declares this: a subclass with an
    ``order`` of its own depends on everything unless it declares something else.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "order" in vars(cls) and "order_depends_on" not in vars(cls):
            cls.order_depends_on = DependsOn.EVERYTHING

    @abstractmethod
    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Returns the order of the jobs of ``snapshot``. Every job stands in one band and has a reason.

        ``previous`` is this policy's answer to the snapshot before; it is None at the start, and when another policy
        was active. Its ``memory`` is all that a policy may remember. Raises OptionError.
        """

    def options(self) -> Mapping[str, object]:
        """Returns the options in force, for ``explain`` and the journal: all public attributes of the instance."""
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}


def next_look(snapshot: Snapshot) -> float:
    """Returns when an order by what jobs have left may change although no job comes or goes: the end of the period.

    Policies return it as ``Ordering.until``. It is infinite where every job has at most one iteration left, as each
    coflow has: such a job finishes no iteration before its end, so its place cannot change.
    """
    return snapshot.now + snapshot.period if any(job.iterations_left > 1 for job in snapshot.jobs) else math.inf
