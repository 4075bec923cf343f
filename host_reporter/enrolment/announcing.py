"""A thread that announces an approved host now and then, so that it is found where its cable is by now."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from controller.wire.announcement import Announcement
from host_reporter.enrolment.announcer import announce
from host_reporter.enrolment.interface import InterfaceError, InterfaceFacts
from host_reporter.notices import Notices
from host_reporter.worker import Worker

AGAIN_SECONDS = 10.0
"""Announce the host this often: the controller listens for CHECK_FOR_SECONDS at a time."""
STOP_SECONDS = 1.0
_KEY = "announcement"


class Announcing:
    """Announces ``host`` with its ``secret``. ``facts`` returns what there is to say of each interface now."""

    def __init__(
        self,
        host: str,
        secret: str,
        facts: Callable[[], Sequence[InterfaceFacts]],
        notices: Notices,
        *,
        failed: Callable[[Exception], None],
        send: Callable[[str, str, Announcement], str | None] = announce,
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        self._host, self._secret = host, secret
        self._facts = facts
        self._notices = notices
        self._send = send
        self._again_seconds = again_seconds
        self._worker = Worker("announcing", self._work, failed=failed)

    def start(self) -> None:
        """Begin."""
        self._worker.start()

    def stop(self) -> None:
        """End."""
        self._worker.stop(STOP_SECONDS)

    def _work(self) -> None:
        while not self._worker.wait(self._again_seconds):
            why_not = self._announce()
            if why_not is None:
                self._notices.clear(_KEY)
            else:
                self._notices.say(_KEY, f"the host cannot be found at its switch: {why_not}")

    def _announce(self) -> str | None:
        """Announce all interfaces of the host; returns why one cannot be, or None."""
        try:
            facts = self._facts()
        except InterfaceError as error:
            return str(error)
        said = [self._announce_interface(each.name, each.mac) for each in facts]
        return next((why_not for why_not in said if why_not is not None), None)

    def _announce_interface(self, name: str, mac: str | None) -> str | None:
        if mac is None:
            return f"{name} has no MAC address"
        return self._send(name, self._host, Announcement(mac, self._secret))
