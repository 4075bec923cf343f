"""What this host asks for: all its interfaces, or the first alone where the controller is of an earlier version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from controller.wire import HostPut, HostRequest, LinkRequest
from controller.wire.addresses import MAX_ADDRESSES
from controller.wire.hosts import MAX_LINK_ADDRESSES
from host_reporter.enrolment.interface import InterfaceFacts
from host_reporter.uplink.connection import Answer

_FIELD = "request.links"


class Requests:
    """The requests of one host. ``rates`` are those that the options give, by interface, in bit/s."""

    def __init__(self, token_sha256: str, rates: Mapping[str, float]) -> None:
        self._token_sha256 = token_sha256
        self._rates = rates
        self._are_links_known = True

    def body(self, facts: Sequence[InterfaceFacts]) -> str:
        """Returns the body of a request with these interfaces, the first one first."""
        first = facts[0]
        has_more = len(facts) > 1 or first.addresses != first.ipv4
        rate = self._rate_bps(first)
        request = HostRequest.model_construct(
            addresses=first.ipv4[:MAX_ADDRESSES],
            interface=first.name,
            mac=first.mac,
            ingress_bps=rate,
            egress_bps=rate,
            token_sha256=self._token_sha256,
            # A controller of an earlier version refuses what it does not know.
            links=tuple(self._links(facts)) if has_more and self._are_links_known else None,
        )
        return HostPut.model_construct(request=request).model_dump_json(exclude_none=True, warnings=False)

    def is_too_new(self, answer: Answer) -> bool:
        """Returns whether the controller refuses only that several interfaces are named. The next request has one."""
        if not self._are_links_known or not 400 <= answer.status < 500:
            return False
        try:
            fields = [str(error["field"]) for error in json.loads(answer.body)["errors"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        self._are_links_known = fields != [_FIELD]
        return not self._are_links_known

    def _links(self, facts: Sequence[InterfaceFacts]) -> Iterator[LinkRequest]:
        room = MAX_LINK_ADDRESSES
        for each in facts:
            addresses = each.addresses[: min(room, MAX_ADDRESSES)]
            room -= len(addresses)
            if addresses:
                rate = self._rate_bps(each)
                yield LinkRequest.model_construct(
                    interface=each.name, addresses=addresses, mac=each.mac, ingress_bps=rate, egress_bps=rate
                )

    def _rate_bps(self, facts: InterfaceFacts) -> float | None:
        return self._rates.get(facts.name) or facts.rate_bps
