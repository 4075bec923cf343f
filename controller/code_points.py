"""The code points (DSCP) that carry the order through the network: which one stands for which class, or job. Pure.

A DSCP is the upper six bits of the TOS byte in an IPv4 header, and of the traffic class in an IPv6 header (RFC 2474).
The two lower bits belong to congestion notification (ECN, RFC 3168), and nothing of Trainyard changes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

MOST = 63
"""A DSCP has six bits."""
CNP_DSCP = 48
"""The DSCP that NICs give RoCE's notification of congestion (CNP), unless they are set otherwise."""


@dataclass(frozen=True, slots=True)
class CodePoints:
    """The DSCPs of the classes or of the jobs, and of other traffic.

    ``classes[k]`` is the DSCP of class k. Packets of jobs that carry no data get ``acknowledgements`` and are served
    with class 0 whatever the job's class: without its acknowledgements a job could not use an idle link. None: they get
    the DSCP of class 0. ``other`` is what a packet gets whose DSCP is cleared. ``exclusive`` are DSCPs that no program
    but Trainyard uses, so that they are cleared wherever a program sets them. All others of these DSCPs have a meaning
    for other programs, too.

    ``jobs`` are the DSCPs that jobs have for their life; None: jobs have those of their classes. Where jobs have their
    own, only the number of ``classes`` counts, packets without data keep their job's where ``acknowledgements`` is
    None, and ``order`` has the DSCPs of present jobs, each with the class that it is served with now.
    """

    classes: tuple[int, ...]
    acknowledgements: int | None = None
    other: int = 0
    exclusive: frozenset[int] = frozenset()
    jobs: tuple[int, ...] | None = None
    order: tuple[tuple[int, int], ...] = ()

    @property
    def of_data(self) -> tuple[int, ...]:
        """The DSCPs that the data of jobs has."""
        return self.classes if self.jobs is None else self.jobs

    @property
    def owned(self) -> tuple[int, ...]:
        """All DSCPs that mean something to a switch."""
        return self.of_data if self.acknowledgements is None else (*self.of_data, self.acknowledgements)

    @property
    def shared(self) -> frozenset[int]:
        """The DSCPs that mean something to a switch, and that other programs use, too."""
        return frozenset(self.owned) - self.exclusive

    @property
    def shared_in_jobs(self) -> frozenset[int]:
        """The shared DSCPs that no process of a job may set: a job's own is not among them.

        A NIC with RDMA and a tunnel set that themselves, where no host could clear it.
        """
        return self.shared if self.jobs is None else self.shared - frozenset(self.jobs)

    @property
    def without_data(self) -> int | None:
        """The DSCP of a job's packets that carry no data; None: that of the job's data."""
        if self.acknowledgements is not None:
            return self.acknowledgements
        return self.classes[0] if self.jobs is None else None

    @property
    def sure_acknowledgements(self) -> int | None:
        """The DSCP by which a switch may recognise packets without data; None where data may have the same one.

        A host cannot keep other programs from setting a shared DSCP.
        """
        return self.acknowledgements if self.acknowledgements in self.exclusive else None

    def first(self, count: int) -> CodePoints:
        """Returns the values for only the first ``count`` classes. The others' exclusive DSCPs stay exclusive."""
        return replace(self, classes=self.classes[:count])

    def in_order(self, order: Mapping[int, int]) -> CodePoints:
        """Returns the values with the class that each DSCP of a present job is served with.

        A DSCP for local use that is no longer among those for jobs, and that a job still has, is exclusive, too.
        """
        jobs = tuple(dict.fromkeys((*(self.jobs or ()), *sorted(order))))
        exclusive = self.exclusive | frozenset(filter(is_local, order))
        return replace(self, jobs=jobs, order=tuple(sorted(order.items())), exclusive=exclusive)

    def unordered(self) -> CodePoints:
        """Returns the values without the classes of present jobs, so that plans have equal ones."""
        return replace(self, order=()) if self.order else self

    def served(self) -> dict[int, int]:
        """Returns the class that each DSCP is served with."""
        served = {dscp: k for k, dscp in enumerate(self.classes)} if self.jobs is None else dict(self.order)
        return served if self.acknowledgements is None else served | {self.acknowledgements: 0}


def code_points(
    classes: Sequence[int], acknowledgements: int | None, other: int = 0, jobs: Sequence[int] | None = None
) -> CodePoints:
    """Returns the values with those DSCPs exclusive that RFC 2474, section 6, leaves to local use (pool 2: xxxx11)."""
    given = CodePoints(tuple(classes), acknowledgements, other, jobs=None if jobs is None else tuple(jobs))
    return replace(given, exclusive=frozenset(filter(is_local, given.owned)))


def is_local(dscp: int) -> bool:
    """Returns whether a DSCP is for local use (RFC 2474, section 6), so that no standard gives it a meaning."""
    return dscp & 0b11 == 0b11


def local_dscps() -> tuple[int, ...]:
    """Returns all DSCPs for local use."""
    return tuple(filter(is_local, range(MOST + 1)))


def precedence(dscp: int) -> int:
    """Returns the IP precedence: the upper three bits, by which older networks and DCB tell priorities."""
    return dscp >> 3


POOL_2 = code_points((59, 51, 43, 35, 27, 19, 11), 63)
"""The default: points for local use, whose precedence falls with the class. A network that knows only the precedence
serves the classes in the same order."""

CLASS_SELECTORS = code_points((56, 48, 40, 32, 24, 16, 8), None)
"""CS7 to CS1 (RFC 2474, section 4.2.2), which nearly every switch serves by default. Other programs use them, too."""

DCB = code_points((59, 47, 43, 39, 35, 19, 11), 63)
"""Points for local use without the precedences 3 and 6, which RoCE (DSCP 26) and its congestion notification (CNP, DSCP
48) have for themselves on lossless Ethernet (IEEE 802.1Qbb)."""

Preset = Literal["pool-2", "class-selectors", "dcb"]
PRESETS: Mapping[str, CodePoints] = MappingProxyType({"pool-2": POOL_2, "class-selectors": CLASS_SELECTORS, "dcb": DCB})
"""The sets that the settings can name."""
