"""What happens in the controller, counted and timed, for Prometheus and for ``GET /v1/status``.

Only what happens is here. What is now, such as the number of jobs, is read when Prometheus asks (see
``controller.api.exposition``). A label that has few values has all of them from the start, so that the first increase
is seen, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest

from controller.registry.triggers import Trigger
from controller.wire import ReportAnswer

MAX_SAMPLES = 10_000
_LATENCY_BUCKETS = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0)
_REQUEST_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 20.0)
REFUSED = "refused"
"""Count a request that reached no call under this route."""
OTHER = "other"
"""Count a request under this method where its route is no call's."""
PROOFS = ("certificate", "oidc", "slowed", "token")


@dataclass(frozen=True, slots=True)
class Latency:
    """The number of latest samples (10,000 at most), and their exact quantiles in seconds."""

    count: int
    p50: float | None
    p99: float | None
    max: float | None


class Samples:
    """Keeps the latest latencies one by one, and a histogram of all."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._recent: deque[float] = deque(maxlen=MAX_SAMPLES)

    def add(self, seconds: float) -> None:
        """Add a sample."""
        self._recent.append(seconds)
        self._histogram.observe(seconds)

    def latency(self) -> Latency:
        """Returns the quantiles of the latest samples (nearest rank)."""
        ordered = sorted(self._recent)
        if not ordered:
            return Latency(0, None, None, None)
        return Latency(len(ordered), _rank(ordered, 0.50), _rank(ordered, 0.99), ordered[-1])


def _rank(ordered: list[float], quantile: float) -> float:
    return ordered[max(0, -int(-quantile * len(ordered) // 1) - 1)]


class Metrics:
    """All that is counted and timed, in a collector registry of its own."""

    def __init__(self) -> None:
        # When a series began says nothing that an operator asks, and doubles the number of series.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no type for it
        self.registry = registry = CollectorRegistry()
        self.plans = Counter("trainyard_plans", "Plans made", registry=registry)
        self.plan_causes = _counter(
            registry,
            "trainyard_plan_causes",
            "What plans were made for; several causes may share a plan",
            cause=tuple(Trigger),
        )
        self.plan_errors = Counter("trainyard_plan_errors", "Plans that failed", registry=registry)
        self.apply_errors = Counter("trainyard_apply_errors", "Changes that a switch refused", registry=registry)
        self.flow_mods = Counter("trainyard_flow_mods", "Rules added, changed or deleted", registry=registry)
        self.gate_renewals = Counter("trainyard_gate_renewals", "Gates kept open", registry=registry)
        self.gate_errors = Counter("trainyard_gate_errors", "Rounds of renewal that failed", registry=registry)
        self.reports = _counter(
            registry,
            "trainyard_reports",
            "Batches of hosts: taken, or merged before (duplicate)",
            status=get_args(ReportAnswer.model_fields["status"].annotation),
        )
        self.requests = Counter(
            "trainyard_http_requests",
            "Requests answered, by route and status; the route 'unknown' stands for all paths without a call, "
            "'refused' for what is no HTTP",
            ["method", "route", "status"],
            registry=registry,
        )
        self.request_seconds = Histogram(
            "trainyard_http_request_duration_seconds",
            "From a request's head until its answer is made, the coming of its body included, the time that a long "
            "poll is held back left out",
            ["method", "route", "status_class"],
            registry=registry,
            buckets=_REQUEST_BUCKETS,
        )
        self.wrong_tokens = _counter(
            registry,
            "trainyard_wrong_tokens",
            "Requests refused for what they showed: a token, a token of the identity provider (oidc), a client "
            "certificate; 'slowed': not looked at, because too many of the address were wrong before",
            proof=PROOFS,
        )
        self.reloads = _counter(
            registry,
            "trainyard_reloads",
            "Tries to read the settings again: done or refused",
            outcome=("done", "refused"),
        )
        self.events = Counter(
            "trainyard_events", "Events for those who follow GET /v1/events", ["event"], registry=registry
        )
        self.event_gaps = Counter(
            "trainyard_event_gaps",
            "How often a client of GET /v1/events was told that it has missed events",
            registry=registry,
        )
        self.plan_seconds = Histogram(
            "trainyard_plan_duration_seconds", "Time to make a plan", registry=registry, buckets=_LATENCY_BUCKETS
        )
        self.report_to_plan = Samples(
            Histogram(
                "trainyard_trigger_to_plan_seconds",
                "From a trigger's arrival until its plan was applied, rules changed or not",
                registry=registry,
                buckets=_LATENCY_BUCKETS,
            )
        )
        self.report_to_rule = Samples(
            Histogram(
                "trainyard_report_to_rule_seconds",
                "From the arrival of a report that triggers a plan to the barrier reply, where rules changed",
                registry=registry,
                buckets=_LATENCY_BUCKETS,
            )
        )
        self.change_to_rule = Samples(
            Histogram(
                "trainyard_change_to_rule_seconds",
                "From the arrival of any other call that triggers a plan to the barrier reply, where rules changed",
                registry=registry,
                buckets=_LATENCY_BUCKETS,
            )
        )

        # The process itself: its memory, processor time, files, interpreter and garbage collection.
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

    def answered(self, call: str, status: int, seconds: float) -> None:
        """Count a request that reached the application, and note how long its answer took.

        ``call`` is a method and a route, such as ``GET /v1/jobs/{id}``, or ``unknown``.
        """
        method, _, route = call.rpartition(" ")
        method = method or OTHER
        self.requests.labels(method=method, route=route, status=str(int(status))).inc()
        duration = self.request_seconds.labels(method=method, route=route, status_class=f"{int(status) // 100}xx")
        duration.observe(max(seconds, 0.0))

    def refused(self, status: HTTPStatus) -> None:
        """Count a request that was answered without reaching the application."""
        self.requests.labels(method=OTHER, route=REFUSED, status=str(int(status))).inc()

    def text(self) -> bytes:
        """Returns all that is counted and timed in Prometheus's text format."""
        return generate_latest(self.registry)


def _counter(registry: CollectorRegistry, name: str, meaning: str, **values: Iterable[str]) -> Counter:
    """Returns a counter with one label, which has all of its values from the start."""
    ((label, each),) = values.items()
    counter = Counter(name, meaning, [label], registry=registry)
    for value in each:
        counter.labels(value)
    return counter


def counted(counter: Counter) -> float:
    """Returns the present value of a counter, summed over all its labels."""
    return sum(
        sample.value for family in counter.collect() for sample in family.samples if sample.name.endswith("_total")
    )
