"""Announces this host to its switch, by a frame that no switch forwards."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from controller.wire.announcement import Announcement, frame_of
from host_reporter.nic import netdev_list
from host_reporter.nic.errors import NicError
from host_reporter.nic.lower import places
from host_reporter.nic.netdev import Netdev


def announce(interface: str, host: str, announcement: Announcement) -> str | None:
    """Send one announcement out of an interface; returns why it cannot be sent, or None. It needs CAP_NET_RAW."""
    try:
        cables = cables_of(netdev_list.read().netdevs, interface)
        if len(cables) > 1:
            return f"{interface} has several cables ({', '.join(cables)}), so it is at no single port of a switch"
        # Of protocol 0, so that it receives nothing.
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as sending:
            sending.bind((cables[0], 0))
            sending.send(frame_of(announcement, host))
    except PermissionError:
        return "the agent may not send it without CAP_NET_RAW; an operator can give the switch and the port instead"
    except OSError as error:
        return f"{interface}: {error.strerror}"
    return None


def cables_of(netdevs: Mapping[int, Netdev], interface: str) -> tuple[str, ...]:
    """Returns the interfaces by whose cables an interface sends: itself, what a VLAN lies on, the ports of a bond.

    A frame that a VLAN sends has a tag, so that it would be no frame of LLDP to the switch. Pure.
    """
    try:
        return tuple(place.interface for place in places(netdevs, interface))
    except NicError:  # it is not known what carries its packets
        return (interface,)
