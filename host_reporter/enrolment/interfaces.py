"""Which interfaces this host enrols with: those of the options, or those that may carry the traffic of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.wire.addresses import MAX_SERVER_INTERFACES
from host_reporter.enrolment.interface import InterfaceError, InterfaceFacts, look
from host_reporter.ip_addresses import packed
from host_reporter.nic import netdev_list
from host_reporter.unseen.choice import choose


def look_at_all(names: Sequence[str], local_address: str | None, *, is_whole: bool) -> tuple[InterfaceFacts, ...]:
    """Returns what there is to say of each interface, the first one first.

    Without ``names`` they are that of ``local_address``, this host's own address on its way to the controller, and the
    physical ones beside it. With ``is_whole`` each of ``names`` must have an address. Raises InterfaceError.
    """
    first = look(names[0] if names else None, local_address, needs_address=is_whole)
    named = (look(name, needs_address=is_whole) for name in names[1:])
    others = named if names else _beside(first, local_address)
    found, macs = [first], {first.mac}
    for other in others:
        # What lies on another interface, such as a VLAN, has the MAC address of that.
        if other.mac is None or other.mac not in macs:
            found.append(other)
            macs.add(other.mac)
    return tuple(found[:MAX_SERVER_INTERFACES])


def _beside(first: InterfaceFacts, local_address: str | None) -> Iterator[InterfaceFacts]:
    """Yields the physical interfaces beside the first that are as fast: a slower one is there for management."""
    address = packed(local_address) if local_address is not None else None
    try:
        network = netdev_list.read()
    except OSError:
        return
    choice = choose(network, {address} if address is not None else (), {first.name})
    for index in sorted(choice.others):
        try:
            other = look(network.netdevs[index].name)
        except InterfaceError:
            continue
        if (other.rate_bps or 0.0) >= (first.rate_bps or 0.0):
            yield other
