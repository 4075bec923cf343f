"""From the counters of interfaces, ports and sockets to one sample of all of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from host_reporter.nic.netdev import Count, Network
from host_reporter.unseen.choice import Choice, carrier
from host_reporter.unseen.counts import Carried, Port, Sample


def sample(
    time: float,
    network: Network,
    choice: Choice,
    ports: Sequence[Port],
    *,
    own: Mapping[bytes, Count],
    others: Iterable[Count],
) -> Sample:
    """Returns all counts at a moment.

    ``own`` are the bytes of the TCP sockets in the agent's network namespace by local address, ``others`` those of each
    other namespace.
    """
    by_netdev: dict[int, Count] = {}
    elsewhere = Count()
    for address, count in own.items():
        index = network.addresses.get(address)
        at = carrier(network, choice, index) if index is not None else None
        if at is None:
            elsewhere = elsewhere.plus(count)
        else:
            by_netdev[at] = by_netdev.get(at, Count()).plus(count)
    for count in others:
        elsewhere = elsewhere.plus(count)
    counted = [network.netdevs[index] for index in choice.all]
    return Sample(
        time,
        {each.name: Carried(each.bytes, each.packets, by_netdev.get(each.ifindex, Count())) for each in counted},
        elsewhere,
        {port.name: _of_port(port, network) for port in ports},
    )


def _of_port(port: Port, network: Network) -> Carried:
    """Returns what a port has carried. What the network interfaces above it carry is compared by itself."""
    payload = packets = Count()
    for netdev in network.netdevs.values() if port.has_their_bytes else ():
        if netdev.name in port.netdevs:
            payload, packets = payload.plus(netdev.bytes), packets.plus(netdev.packets)
    return Carried(port.bytes, packets, payload)
