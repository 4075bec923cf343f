"""The API on a real socket in this process, over a network in memory: where settings or parts must be as no switch,
and no start of a controller, makes them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import eventlet
import eventlet.tpool
import pytest
import requests
from test_loop import Yard

from controller.api import ApiServer, Services
from controller.api.dispatch import Api
from controller.cli import main
from controller.dataplane.values import PortProof, SwitchStatus


class Served:
    """The API over the parts of ``yard``."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        services: Any = Services(
            yard.config, yard.registry, yard.network, yard.loop, yard.store, yard.journal, yard.metrics
        )
        self._server = ApiServer(Api(services), yard.config.api)
        self._thread = eventlet.spawn(self._server)
        self.url = f"http://127.0.0.1:{self._server.address[1]}"

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        # In a thread of its own: who waits in this one would keep the server from answering.
        return eventlet.tpool.execute(self._ask, method, path, body)

    def _ask(self, method: str, path: str, body: Any) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(method, self.url + path, json=body, timeout=15)

    def stop(self) -> None:
        eventlet.sleep(0.01)  # the connections that the client has closed end first
        self._thread.kill()
        self._server.server.close()
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


PROOF = PortProof(1, "s1-eth1", {0: 3})


@pytest.mark.parametrize(
    ("probe", "ports", "problems", "word", "status"),
    [
        (True, (PROOF,), [], "ready", 0),
        (False, (), ["queues are not proven: probe is false"], "not proven", 1),
    ],
)
def test_queues_that_nobody_has_tried_are_not_shown_as_proven(
    capsys: pytest.CaptureFixture[str],
    probe: bool,
    ports: tuple[PortProof, ...],
    problems: list[str],
    word: str,
    status: int,
) -> None:
    with served(probe=probe) as api:
        switch = SwitchStatus(1, connected=True, ready=True, reason=None, rules=3, bundles=True, ports=ports)
        api.yard.network.status = lambda: (switch,)  # type: ignore[method-assign]
        readiness = api.call("GET", "/readyz")
        assert readiness.status_code == 200, "it works, proven or not"
        assert readiness.json()["status"] == ("degraded" if problems else "ready")
        assert readiness.json()["problems"] == [problem.partition(":")[0] for problem in problems]
        assert api.call("GET", "/v1/status").json()["problems"] == problems
        assert eventlet.tpool.execute(main, ["probe", "--url", api.url, "--json"]) == status
        capsys.readouterr()
        assert eventlet.tpool.execute(main, ["probe", "--url", api.url]) == status
    table = [re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines()]
    assert table[1][:3] == ["0000000000000001", "all", word]


def test_readiness_is_the_switches_and_not_a_plans() -> None:
    with served(is_planning=False) as api:
        assert api.call("GET", "/v1/plan").status_code == 503
        assert api.call("GET", "/readyz").json() == {"status": "ready", "problems": []}
        described = api.call("GET", "/openapi.json").json()["paths"]["/readyz"]["get"]["summary"]
    assert described.startswith("At least one switch is ready for rules")
