"""Which traffic belongs to which job: the claims of all running jobs, by port and by flow.

An index, so that a job is compared only with the jobs that share a port or flow with it. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from controller.declared.claims import Claims
from controller.declared.job_flows import Endpoint, FlowKey, PairKey, touched, wider

K = TypeVar("K", bound=Hashable)


class _Index(Generic[K]):
    """Jobs by a key that several may have."""

    def __init__(self) -> None:
        self._jobs: defaultdict[K, set[str]] = defaultdict(set)

    def add(self, job: str, keys: Iterable[K]) -> None:
        for key in keys:
            self._jobs[key].add(job)

    def remove(self, job: str, keys: Iterable[K]) -> None:
        for key in keys:
            self._jobs[key].discard(job)
            if not self._jobs[key]:
                del self._jobs[key]

    def of(self, keys: Iterable[K]) -> set[str]:
        """Returns all jobs that have one of the keys."""
        return {job for key in keys if key in self._jobs for job in self._jobs[key]}


class _Ports:
    """The claims of jobs of one transport protocol."""

    def __init__(self) -> None:
        self._listens: dict[Endpoint, str] = {}
        self._touches: _Index[Endpoint] = _Index()
        self._flows: dict[FlowKey, str] = {}
        self._inside: _Index[FlowKey] = _Index()
        """Jobs by the flows that cover one of their flows."""

    def add(self, job: str, claims: Claims) -> None:
        self._listens.update(dict.fromkeys(claims.listens, job))
        self._flows.update(dict.fromkeys(claims.flows, job))
        self._touches.add(job, claims.touches)
        self._inside.add(job, _wider_than(claims.flows))

    def remove(self, job: str, claims: Claims) -> None:
        for end in claims.listens:
            if self._listens.get(end) == job:
                del self._listens[end]
        for flow in claims.flows:
            if self._flows.get(flow) == job:
                del self._flows[flow]
        self._touches.remove(job, claims.touches)
        self._inside.remove(job, _wider_than(claims.flows))

    def owner(self, flow: FlowKey) -> str | None:
        for end in touched(flow):
            if end in self._listens:
                return self._listens[end]
        return next((self._flows[key] for key in wider(flow) if key in self._flows), None)

    def clashes(self, claims: Claims) -> set[str]:
        ends = (*claims.listens, *claims.touches)
        jobs = {self._listens[end] for end in ends if end in self._listens}
        jobs |= self._touches.of(claims.listens)
        jobs |= {self._flows[key] for flow in claims.flows for key in wider(flow) if key in self._flows}
        return jobs | self._inside.of(claims.flows)


class Owners:
    """The claims of jobs. Adding, removing and looking up cost in proportion to the claims of the one job."""

    def __init__(self) -> None:
        self._tcp = _Ports()
        self._udp = _Ports()
        self._pairs: _Index[PairKey] = _Index()

    def add(self, job: str, claims: Claims) -> None:
        """Add the claims of a job, which clash with no other's."""
        self._tcp.add(job, claims)
        if claims.udp is not None:
            self._udp.add(job, claims.udp)
        self._pairs.add(job, claims.pairs)

    def remove(self, job: str, claims: Claims) -> None:
        """Remove the claims of a job."""
        self._tcp.remove(job, claims)
        if claims.udp is not None:
            self._udp.remove(job, claims.udp)
        self._pairs.remove(job, claims.pairs)

    def owner(self, flow: FlowKey) -> str | None:
        """Returns the job that claims a TCP flow's packets by their ports; None where no job does."""
        return self._tcp.owner(flow)

    def clashes(self, claims: Claims) -> set[str]:
        """Returns the jobs whose ports or flows share packets with these claims. Pairs without ports do not count."""
        jobs = self._tcp.clashes(claims)
        return jobs if claims.udp is None else jobs | self._udp.clashes(claims.udp)

    def shared(self, job: str, claims: Claims) -> dict[PairKey, int]:
        """Returns the pairs that other jobs claim as well as ``job``, and how many others do."""
        found = {pair: len(self._pairs.of((pair,)) - {job}) for pair in claims.pairs}
        return {pair: others for pair, others in found.items() if others}


def _wider_than(flows: Iterable[FlowKey]) -> set[FlowKey]:
    return {key for flow in flows for key in wider(flow) if key != flow}
