"""The controller's own counters and latencies, for Prometheus and for ``GET /v1/status``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

MAX_SAMPLES = 10_000
_LATENCY_BUCKETS = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0)
_REQUEST_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 20.0)
REFUSED = "refused"
"""Count a request that reached no call under this name."""


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


class ClassBytes(Collector):
    """Bytes that switches have sent by class, as a Prometheus counter; the dataplane counts them."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def merge(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Merge the present counts by datapath id and class; a switch that is left out keeps its counts."""
        for dpid, classes in counts.items():
            for service_class, count in classes.items():
                self._counts[dpid, service_class] = count

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Yields the counts as Prometheus reads them."""
        family = CounterMetricFamily(
            "trainyard_switch_class_bytes",
            "Bytes that a switch has sent by class; 'other' is all other traffic",
            labels=["dpid", "service_class"],
        )
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        yield family


class Metrics:
    """All metrics, in a collector registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.plans = Counter("trainyard_plans", "Plans made", registry=registry)
        self.plan_causes = Counter(
            "trainyard_plan_causes", "What plans were made for; several may share a plan", ["cause"], registry=registry
        )
        self.plan_errors = Counter("trainyard_plan_errors", "Plans that failed", registry=registry)
        self.apply_errors = Counter("trainyard_apply_errors", "Changes that a switch refused", registry=registry)
        self.flow_mods = Counter("trainyard_flow_mods", "Rules added, changed or deleted", registry=registry)
        self.gate_renewals = Counter("trainyard_gate_renewals", "Gates kept open", registry=registry)
        self.gate_errors = Counter("trainyard_gate_errors", "Rounds of renewal that failed", registry=registry)
        self.reports = Counter("trainyard_reports", "Batches of hosts, by outcome", ["status"], registry=registry)
        self.requests = Counter(
            "trainyard_http_requests",
            "Requests answered, by call and status; 'unknown' is what no call is at, 'refused' what is no HTTP",
            ["call", "status"],
            registry=registry,
        )
        self.request_seconds = Histogram(
            "trainyard_http_request_seconds",
            "From a request's head until its answer is made, the coming of its body included, the time that a long "
            "poll is held back left out",
            ["call"],
            registry=registry,
            buckets=_REQUEST_BUCKETS,
        )
        self.wrong_tokens = Counter(
            "trainyard_wrong_tokens",
            "Requests refused for what they showed: a token, a token of the identity provider (oidc), a client "
            "certificate; 'slowed': not looked at, because too many of the address were wrong before",
            ["proof"],
            registry=registry,
        )
        self.journal_degraded = Gauge(
            "trainyard_journal_degraded", "1 while the journal cannot be written", registry=registry
        )
        self.settings = Info("trainyard_settings", "The settings file in force, by its SHA-256", registry=registry)
        self.settings_loaded = Gauge(
            "trainyard_settings_loaded_timestamp_seconds",
            "When the settings in force were read, in seconds since 1970",
            registry=registry,
        )
        self.reloads = Counter(
            "trainyard_reloads", "Tries to read the settings again: done or refused", ["outcome"], registry=registry
        )
        self.paused = Gauge(
            "trainyard_paused", "1 while an operator has paused: nothing is enforced", registry=registry
        )
        self.audit_degraded = Gauge(
            "trainyard_audit_degraded", "1 while the audit file cannot be written", registry=registry
        )
        self.audit_lost = Counter(
            "trainyard_audit_lost_records", "Records of the audit that were lost since the start", registry=registry
        )
        self.events = Counter(
            "trainyard_events", "Events for those who follow GET /v1/events", ["event"], registry=registry
        )
        self.event_streams = Gauge(
            "trainyard_event_streams", "Clients that follow GET /v1/events now", registry=registry
        )
        self.jobs = Gauge("trainyard_jobs", "Jobs in the plan in force", registry=registry)
        self.degraded = Gauge(
            "trainyard_degraded_to_marked",
            "1 while switches look at hosts' marks because the flows need more rules than table_budget",
            registry=registry,
        )
        self.flow_rules = Gauge(
            "trainyard_flow_rules", "Rules that the jobs' flows need at one switch, at most", registry=registry
        )
        self.switches_ready = Gauge("trainyard_switches_ready", "Switches that are ready for rules", registry=registry)
        self.class_bytes = ClassBytes()
        registry.register(self.class_bytes)
        self.plan_seconds = Histogram(
            "trainyard_plan_seconds", "Time to make a plan", registry=registry, buckets=_LATENCY_BUCKETS
        )
        self.report_to_plan = Samples(
            Histogram(
                "trainyard_report_to_plan_seconds",
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
        """Count a request that reached the application, and note how long its answer took."""
        self.requests.labels(call=call, status=str(int(status))).inc()
        self.request_seconds.labels(call=call).observe(max(seconds, 0.0))

    def refused(self, status: HTTPStatus) -> None:
        """Count a request that was answered without reaching the application."""
        self.requests.labels(call=REFUSED, status=str(int(status))).inc()

    def text(self) -> bytes:
        """Returns all metrics in Prometheus's text format."""
        return generate_latest(self.registry)


def counted(counter: Counter) -> float:
    """Returns the present value of a counter, summed over all its labels."""
    return sum(
        sample.value for family in counter.collect() for sample in family.samples if sample.name.endswith("_total")
    )
