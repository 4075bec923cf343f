"""Sentences on traffic without ports that several jobs declare, so that switches cannot say whose it is."""

from __future__ import annotations

from controller.api.services import Services
from controller.declared.job_flows import PairKey
from controller.model import TrafficProtocol

MOST = 4
"""Have sentences on at most this many pairs of hosts."""

_NAMES: dict[TrafficProtocol, str] = {"rocev2": "RoCEv2", "any": "any traffic"}


def shared_traffic(services: Services, job_id: str) -> tuple[str, ...]:
    """Returns a sentence for each pair of hosts between which other jobs declare the same as a job. It names none."""
    if not services.config.enforcement.is_by_flows:
        return ()
    shared = sorted(services.registry.shared_pairs(job_id).items())
    more = len(shared) - MOST
    rest = (f"other jobs declare the same between more pairs of hosts, too: {more} more",) if more > 0 else ()
    return (*(_sentence(pair, others) for pair, others in shared[:MOST]), *rest)


def _sentence(pair: PairKey, others: int) -> str:
    src, dst, protocol = pair
    whose = "another job declares" if others == 1 else f"{others} other jobs declare"
    return (
        f"{whose} {_NAMES[protocol]} from {src} to {dst}, too: switches cannot tell these packets apart by flows, and "
        "serve them in no job's class; with identity: dscp they can"
    )
