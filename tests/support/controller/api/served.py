"""The API on a real socket in this process, over a network in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import eventlet
import eventlet.tpool
import requests

from controller.api import ApiServer, Services
from controller.api.dispatch import Api
from controller.process.callers import callers_of
from tests.support.controller.yard import Yard


class Served:
    """The API over the parts of ``yard``."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        services: Any = Services(
            yard.current,
            yard.registry,
            yard.network,
            yard.loop,
            yard.store,
            yard.journal,
            yard.metrics,
            callers_of(yard.config.api, yard.config.host_names, enrolled=yard.hosts.enrolments),
            yard.hosts,
        )
        self.services = services
        self._server = ApiServer(Api(services), yard.config.api, refused=yard.metrics.refused)
        self._thread = eventlet.spawn(self._server)
        self.url = f"http://127.0.0.1:{self._server.address[1]}"

    def call(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        # In a thread of its own: who waits in this one would keep the server from answering.
        return eventlet.tpool.execute(self._ask, method, path, body, headers)

    def _ask(self, method: str, path: str, body: Any, headers: Mapping[str, str] | None) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(method, self.url + path, json=body, headers=headers, timeout=15)

    def stop(self) -> None:
        eventlet.sleep(0.01)  # the connections that the client has closed end first
        self._thread.kill()
        self._server.server.close()
        self.services.workers.stop()
        self.yard.stop()


@contextlib.contextmanager
def served(*, is_planning: bool = True, **settings: Any) -> Iterator[Served]:
    """The API over a new yard, whose loop makes plans where it should."""
    yard = Yard(**{"api": {"port": 0}} | settings)
    yard = yard.start() if is_planning else yard
    made = Served(yard)
    try:
        yield made
    finally:
        made.stop()
