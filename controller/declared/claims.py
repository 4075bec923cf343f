"""Which ports and flows identify a job's traffic, and where two jobs claim the same. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from controller.declared.claimed_traffic import Partners, claimed_pairs
from controller.declared.job_flows import (
    Declaration,
    Endpoint,
    FlowKey,
    PairKey,
    Transport,
    covers,
    goes_beyond_tcp,
    key_of,
    keys_of,
    listening_ends,
    touched,
    wider,
)


@dataclass(frozen=True, slots=True)
class Claims:
    """The ports and flows that identify a job's traffic. ``touches`` are the endpoints that its declared flows name.

    All three are of ``transport``. ``udp`` are the claims of UDP beside those of TCP; None: there are none. ``pairs``
    are claimed, too, but several jobs may claim the same.
    """

    listens: frozenset[Endpoint]
    touches: frozenset[Endpoint]
    flows: frozenset[FlowKey]
    transport: Transport = "tcp"
    udp: Claims | None = None
    pairs: frozenset[PairKey] = frozenset()

    @property
    def go_beyond_tcp(self) -> bool:
        """Whether the job declares traffic that is not TCP."""
        return self.udp is not None

    @classmethod
    def of(cls, spec: Declaration) -> Claims:
        """Returns the claims of a spec."""
        tcp = cls._of(spec, "tcp")
        if not goes_beyond_tcp(spec):
            return tcp
        return replace(tcp, udp=cls._of(spec, "udp"), pairs=frozenset(claimed_pairs(spec, Partners(spec))))

    @classmethod
    def _of(cls, spec: Declaration, transport: Transport) -> Claims:
        flows = frozenset(keys_of(spec, transport))
        return cls(
            listens=listening_ends(spec, transport),
            touches=frozenset(end for flow in flows for end in touched(flow)),
            flows=flows,
            transport=transport,
        )

    def conflict(self, other: Claims, spec: Declaration) -> tuple[str, str] | None:
        """Returns the field of ``spec`` at fault, and what both claim in words; None where the claims do not conflict.

        ``spec`` is the declaration of these claims.
        """
        return self._port_conflict(other, spec) or (
            self.udp._port_conflict(other.udp, spec) if self.udp is not None and other.udp is not None else None
        )

    def _port_conflict(self, other: Claims, spec: Declaration) -> tuple[str, str] | None:
        transport, named = self.transport, "UDP " if self.transport == "udp" else ""
        shared = (self.listens & other.listens) | (self.listens & other.touches) | (self.touches & other.listens)
        if shared:
            host, port = end = min(shared)
            listening = (
                f"tasks.{i}.port"
                for i, task in enumerate(spec.tasks)
                if (task.host, task.port) == end and task.protocol == transport
            )
            claimed = chain(listening, _flows_that(spec, transport, lambda key: end in touched(key)))
            return next(claimed), f"{named}port {port} on {host}"
        # Two flows that leave different ports open share packets too, but the rules' priorities distinguish them.
        if both := _inside(self.flows, other.flows) | _inside(other.flows, self.flows):
            src, dst, src_port, dst_port = flow = min(both, key=str)
            words = f"the {named}flow {src}:{src_port or '*'} to {dst}:{dst_port or '*'}"
            return next(_flows_that(spec, transport, lambda key: key in wider(flow))), words
        return None


def _flows_that(spec: Declaration, transport: Transport, is_meant: Callable[[FlowKey], bool]) -> Iterator[str]:
    """Yields the fields of the flows that match."""
    flows = enumerate(spec.flows)
    return (f"flows.{i}" for i, flow in flows if flow.protocol == transport and is_meant(key_of(flow)))


def _inside(flows: Collection[FlowKey], others: Container[FlowKey]) -> set[FlowKey]:
    """Returns the flows that one of ``others`` covers."""
    return {flow for flow in flows if covers(others, flow)}
