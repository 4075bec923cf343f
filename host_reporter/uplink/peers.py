"""Which host of the controller's settings has an address: fetched from the controller, and again from time to time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus

from pydantic import ValidationError

from controller.documents.faults import described, in_lines
from controller.wire import EVERY_ADDRESS, Peers
from host_reporter.notices import Notices
from host_reporter.uplink.backoff import Backoff
from host_reporter.uplink.connection import Address, Connection, UnreachableError
from host_reporter.worker import Worker

AGAIN_SECONDS = 60.0
"""The addresses are fetched again after this time."""

STOP_SECONDS = 2.0
_KEY = "peers"


class PeerBook:
    """A thread that keeps the addresses. ``changed`` is called after each change, from that thread.

    ``failed`` is called if the thread ends by a fault of its own.
    """

    def __init__(
        self,
        address: Address,
        host: str,
        notices: Notices,
        *,
        changed: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._path = f"/v1/hosts/{host}/peers"
        self._connection = Connection(address)
        self._notices = notices
        self._changed = changed
        self._tag: str | None = None
        self._backoff = Backoff()
        self.addresses: Mapping[str, str] | None = None
        """Hosts by address; None: not known yet."""
        self.interfaces: Mapping[str, str] = {}
        """The interfaces of hosts that have several, by address."""
        self._worker = Worker("peers", self._work, self._connection.close, failed=failed)

    def start(self) -> None:
        """Begin, if it has not begun: who follows no job's sockets asks nobody."""
        self._worker.start()

    def stop(self) -> None:
        """End."""
        self._worker.request_stop()
        self._connection.abort()
        self._worker.stop(STOP_SECONDS)

    def _work(self) -> None:
        while not self._worker.is_stopping:
            self._worker.wait(self._ask())

    def _ask(self) -> float:
        """Ask once; seconds until the next time."""
        began = time.monotonic()
        try:
            answer = self._connection.request("GET", self._path, known_tag=self._tag, prefer=EVERY_ADDRESS)
        except UnreachableError as error:
            return self._trouble(str(error))
        if answer.status == HTTPStatus.NOT_FOUND:
            reason = (
                "it does not tell its hosts' addresses, so jobs' sockets are not reported; is it older than this agent?"
            )
            self._trouble(reason)
            return AGAIN_SECONDS
        if answer.status == HTTPStatus.OK:
            try:
                peers = Peers.model_validate_json(answer.body)
            except ValidationError as error:
                return self._trouble(
                    f"its hosts' addresses are not understood: {in_lines(described(error, None, Peers))[0]}"
                )
            self._tag = answer.tag
            if (peers.addresses, peers.interfaces) != (self.addresses, self.interfaces):
                self.interfaces, self.addresses = peers.interfaces, peers.addresses
                self._changed()
        elif answer.status != HTTPStatus.NOT_MODIFIED:
            return self._trouble(answer.detail)
        self._backoff.reset()
        self._notices.clear(_KEY, "the addresses of the controller's hosts are known")
        return max(AGAIN_SECONDS - (time.monotonic() - began), 1.0)

    def _trouble(self, reason: str) -> float:
        if not self._worker.is_stopping:
            self._notices.say(_KEY, f"the addresses of the controller's hosts cannot be had: {reason}")
        return self._backoff.next_seconds()
