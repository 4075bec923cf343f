"""Notifies systemd that the service is ready, that it lives, and that it stops. Does nothing without systemd.

Source: sd_notify(3) and sd_watchdog_enabled(3). ``NOTIFY_SOCKET`` names a datagram socket by its path, or by ``@`` and
a name in the abstract namespace; ``WATCHDOG_USEC`` is the time within which the process ``WATCHDOG_PID`` (any
process, without it) must give a sign of life.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from eventlet import patcher

# A thread of the operating system uses it, where eventlet's sockets would wait for a hub that does not run.
socket = patcher.original("socket")


class Notifier:
    """Sends to the socket that ``environment`` names. ``watchdog_seconds``: None: no sign of life is expected."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self.watchdog_seconds = _watchdog_seconds(environment) if self._address else None

    def say(self, *states: str) -> None:
        """Send states such as ``READY=1`` in one datagram. A state that cannot be sent is lost."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.sendto("\n".join(states).encode(), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL, self._address)
        except OSError:
            return


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    """Returns the time within which this process must give a sign of life; None: it need not."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) * 1e-6 if text.isascii() and text.isdigit() and int(text) > 0 else None
