"""Announces this host to its switch, by a frame that no switch forwards."""

from __future__ import annotations

import socket

from controller.wire.announcement import Announcement, frame_of


def announce(interface: str, host: str, announcement: Announcement) -> str | None:
    """Send one announcement out of an interface; returns why it cannot be sent, or None. It needs CAP_NET_RAW."""
    try:
        # Of protocol 0, so that it receives nothing.
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as sending:
            sending.bind((interface, 0))
            sending.send(frame_of(announcement, host))
    except PermissionError:
        return "the agent may not send it without CAP_NET_RAW; an operator can give the switch and the port instead"
    except OSError as error:
        return f"{interface}: {error.strerror}"
    return None
