"""The call that Prometheus makes."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from itertools import chain

from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from controller.api.exposition.health import health
from controller.api.exposition.interfaces import interfaces
from controller.api.exposition.network import network
from controller.api.exposition.plans import plans
from controller.api.http import Call, Reply
from controller.api.services import Services
from controller.steps import Pause

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class _Present(Collector):
    """What is now, read while Prometheus waits."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def collect(self) -> Iterator[Metric]:
        """Yields all families."""
        pause = Pause()
        for family in chain.from_iterable(read(self._services) for read in (health, plans, network, interfaces)):
            yield _in_turns(family, pause)


def _in_turns(family: Metric, pause: Pause) -> Metric:
    """Returns the family with samples that let others go on while their text is made: ports have thousands."""
    samples = family.samples

    def each() -> Iterator[Sample]:
        for sample in samples:
            pause()
            yield sample

    family.samples = each()  # type: ignore[assignment]  # the library iterates once
    return family


def read_metrics(services: Services, _call: Call) -> Reply:
    """Read all metrics in the format of Prometheus."""
    text = services.metrics.text() + generate_latest(_Present(services))
    return Reply(HTTPStatus.OK, text, content_type=TEXT)
