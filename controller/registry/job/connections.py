"""The connections of one job: those that it declares, those seen one by one, and those found as one set a host."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from itertools import chain

from controller.declared.claimed_traffic import ClaimedTraffic
from controller.declared.job_flows import FlowKey, between_servers, in_order, wider
from controller.model import Flow
from controller.registry.job.traffic import FoundTraffic

MAX_SEEN_FLOWS = 4096


class Connections:
    """The connections of the job ``job_id``, whose spec claims ``claimed``. ``found``: the sets of hosts' agents.

    The flows for the rules are remembered until the connections change.
    """

    def __init__(self, job_id: str, claimed: ClaimedTraffic) -> None:
        self.found = FoundTraffic()
        self._job_id = job_id
        self._claimed = claimed
        self._seen: OrderedDict[FlowKey, None] = OrderedDict()
        self._flows: tuple[Flow, ...] | None = None
        self._found_flows: tuple[Flow, ...] | None = None

    @property
    def seen(self) -> tuple[FlowKey, ...]:
        """The connections that were seen one by one, the latest at the end."""
        return tuple(self._seen)

    def claim(self, claimed: ClaimedTraffic) -> None:
        """Take what another spec claims. Connections that it covers are kept no more."""
        self._claimed = claimed
        if not claimed.is_without_tcp:
            self.give_up(claimed.covers)
        self._flows = self._found_flows = None

    def see(self, flow: FlowKey) -> bool:
        """Note a connection that a host found; returns whether it adds to the flows that identify the job's traffic."""
        if flow in self._seen:
            self._seen.move_to_end(flow)
            return False
        if self._claimed.covers(flow):
            return False
        self._seen[flow] = None
        while len(self._seen) > MAX_SEEN_FLOWS:
            self._seen.popitem(last=False)
        self._flows = None
        return True

    def merge_found(
        self, host: str, session: str, seq: int, flows: Iterable[FlowKey] | None, *, left_out: int, connections: int
    ) -> bool:
        """Merge the set of a host; returns whether the flows have changed. See ``FoundTraffic.merge``."""
        changed = self.found.merge(host, session, seq, flows, left_out=left_out, connections=connections)
        if changed:
            self._found_flows = None
        return changed

    def restore(self, seen: Iterable[FlowKey], found: FoundTraffic) -> None:
        """Take the connections that the journal holds."""
        for flow in seen:
            self.see(flow)
        self.found, self._found_flows = found, None

    def drop(self, hosts: Collection[str]) -> bool:
        """Forget the sets of these hosts; returns whether there was any."""
        dropped = self.found.drop(hosts)
        if dropped:
            self._found_flows = None
        return dropped

    def give_up(self, is_not_ours: Callable[[FlowKey], bool]) -> bool:
        """Forget the connections that are not the job's; returns whether there were any."""
        found_gone = self.found.give_up(is_not_ours)
        if found_gone:
            self._found_flows = None
        gone = [flow for flow in self._seen if is_not_ours(flow)]
        for flow in gone:
            del self._seen[flow]
        if gone:
            self._flows = None
        return found_gone or bool(gone)

    def flows(self) -> tuple[Flow, ...]:
        """Returns the declared flows and those seen. They are remembered, because they seldom change."""
        if self._flows is None:
            declared = self._claimed.flows
            keys = sorted({*declared, *self._seen}, key=in_order) if self._seen else declared
            beyond = chain(
                (Flow(self._job_id, *key, protocol="udp") for key in self._claimed.udp_flows),
                (Flow(self._job_id, src, dst, protocol=protocol) for src, dst, protocol in self._claimed.pairs),
            )
            self._flows = (*(Flow(self._job_id, *key) for key in keys), *beyond)
        return self._flows

    def found_flows(self) -> tuple[Flow, ...]:
        """Returns the flows found as whole sets, without those that a wider flow or the declaration covers."""
        if self._found_flows is None:
            found = self.found.flows
            own = {
                flow
                for flow in found
                if not self._claimed.covers(between_servers(flow))
                and not any(key in found for key in wider(flow) if key != flow)
            }
            self._found_flows = tuple(Flow(self._job_id, *key) for key in sorted(own, key=in_order))
        return self._found_flows
