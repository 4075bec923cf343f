"""Sentences on bytes of jobs that leave or come by ways that are not seen, so that no mark gives them a class.

Switches order some of them by the addresses of hosts (``controller.rules.pairs.places``).
An interface has carried them, and no TCP connection of its host explains them. A job alone is named only where it alone
runs on the host, and it may be another program even there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from controller.declared.batch import InterfacePart
from controller.model import TrafficProtocol
from controller.registry.registry import Registry
from controller.wire import InterfaceKind

MOST, MOST_OF_JOB = 20, 4
"""Have sentences on at most this many interfaces, of all hosts and of one job."""

_NAMED = 4
"""Name at most this many jobs in a sentence."""

_WAYS: dict[InterfaceKind, str] = {
    "network": "by UDP, a tunnel, or a container or virtual machine whose sockets the agent does not see",
    "rdma": "by RDMA, past TCP",
}
_HELP: dict[InterfaceKind, str] = {
    "network": (
        "the host's interface serves them as other traffic; CAP_SYS_ADMIN lets the agent look into the containers of "
        "jobs, and a job can declare its UDP (protocol: udp)"
    ),
    "rdma": (
        "the host's interface does not order RDMA; a job can declare it (protocol: rocev2), or NCCL_IB_DISABLE=1 in "
        "its environment lets NCCL use TCP"
    ),
}
_DECLARED: dict[InterfaceKind, frozenset[TrafficProtocol]] = {
    "network": frozenset({"udp", "rocev2", "any"}),
    "rdma": frozenset({"rocev2", "any"}),
}
"""What a job declares that explains bytes of an interface. A kernel can send RoCEv2 by itself, as UDP."""


class UnseenAtHost(NamedTuple):
    """The interfaces of a host that carry bytes by ways that are not seen, and the jobs that run there."""

    host: str
    interfaces: tuple[InterfacePart, ...]
    jobs: tuple[str, ...]


class Unseen:
    """All hosts with running jobs whose bytes may leave or come by ways that are not seen, at a moment."""

    def __init__(self, hosts: Iterable[UnseenAtHost]) -> None:
        self.hosts = {at.host: at for at in hosts}
        self._of_job: dict[str, list[UnseenAtHost]] = {}
        for at in self.hosts.values():
            for job in at.jobs:
                self._of_job.setdefault(job, []).append(at)

    @classmethod
    def now(cls, registry: Registry) -> Unseen:
        """Returns what agents say now, without what a job declares that runs on the host."""
        parts = {host: found for host in registry.servers if (found := _unseen(registry.interfaces(host)))}
        jobs = registry.jobs_on(parts) if parts else {}
        for host, protocols in (registry.protocols_on(parts) if parts else {}).items():
            parts[host] = tuple(part for part in parts[host] if _DECLARED[part.kind].isdisjoint(protocols))
        return cls(
            UnseenAtHost(host, found, tuple(jobs[host])) for host, found in parts.items() if found and host in jobs
        )

    def problems(self) -> list[str]:
        """Returns a sentence for each interface, with the amount and the jobs behind a colon; MOST at most."""
        return _cut([(at, part, _jobs(at.jobs)) for at in self.hosts.values() for part in at.interfaces], MOST)

    def of_host(self, host: str) -> tuple[str, ...]:
        """Returns the same for one host."""
        at = self.hosts.get(host)
        return tuple(_sentence(at, part, _jobs(at.jobs)) for part in at.interfaces) if at is not None else ()

    def of_job(self, job: str) -> tuple[str, ...]:
        """Returns a sentence for each interface that carries such bytes of a job; it names no other job."""
        found = self._of_job.get(job, ())
        return tuple(
            _cut([(at, part, _whose(len(at.jobs) - 1)) for at in found for part in at.interfaces], MOST_OF_JOB)
        )


def _cut(facts: Sequence[tuple[UnseenAtHost, InterfacePart, str]], most: int) -> list[str]:
    """Returns the sentences on at most so many interfaces, and one that counts the others."""
    more = len(facts) - most
    rest = f"more interfaces carry bytes that are not seen: {more}; GET /v1/hosts has them"
    return [*(_sentence(*fact) for fact in facts[:most]), *([rest] if more > 0 else [])]


def _unseen(parts: Sequence[InterfacePart]) -> tuple[InterfacePart, ...]:
    return tuple(part for part in parts if part.is_unseen)


def _sentence(at: UnseenAtHost, part: InterfacePart, whose: str) -> str:
    """Returns what is wrong, and behind a colon what may change while it stays wrong."""
    return (
        f"bytes on {part.interface} of host {at.host} are of no connection that is seen, and switches order them by "
        f"the addresses of hosts at best: {_amount(part)}, of {whose}, or of another program, {_WAYS[part.kind]}; "
        f"{_HELP[part.kind]}"
    )


def _amount(part: InterfacePart) -> str:
    rates = (("sent", part.unseen_sent_rate), ("received", part.unseen_received_rate))
    return " and ".join(f"about {_bits(rate)} {way}" for way, rate in rates if rate is not None)


def _bits(rate: float) -> str:
    """Returns bytes a second as people read them: two digits are as much as is known."""
    bps = rate * 8
    return f"{float(f'{bps / 1e9:.2g}'):g} Gbit/s" if bps >= 1e9 else f"{float(f'{bps / 1e6:.2g}'):g} Mbit/s"


def _jobs(jobs: Sequence[str]) -> str:
    """Returns whose the bytes may be."""
    if len(jobs) == 1:
        return f"job {jobs[0]}, which alone runs there"
    more = [f"one of {len(jobs) - _NAMED} more"] if len(jobs) > _NAMED else []
    return "job " + " or ".join([*jobs[:_NAMED], *more])


def _whose(others: int) -> str:
    if others == 0:
        return "this job, which alone runs there"
    return f"this job or {'the other one' if others == 1 else f'one of the {others} others'} there"
