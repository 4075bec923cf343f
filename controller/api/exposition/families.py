"""Families of samples as Prometheus reads them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

Rows = Iterable[tuple[Sequence[str], float]]
"""The values of the labels, and the sample's value."""


def gauge(name: str, meaning: str, value: float | None) -> Metric:
    """Returns a gauge without labels; a value of None is no sample."""
    return gauges(name, meaning, (), [((), value)] if value is not None else [])


def gauges(name: str, meaning: str, labels: Sequence[str], rows: Rows) -> Metric:
    """Returns a gauge with labels."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, value in rows:
        family.add_metric(values, float(value))
    return family


def counters(name: str, meaning: str, labels: Sequence[str], rows: Rows) -> Metric:
    """Returns a counter with labels. ``name`` is without the ending ``_total``."""
    family = CounterMetricFamily(name, meaning, labels=labels)
    for values, value in rows:
        family.add_metric(values, float(value))
    return family


def info(name: str, meaning: str, values: Mapping[str, str]) -> Metric:
    """Returns information: its values are labels, and the sample is 1. ``name`` is without the ending ``_info``."""
    return InfoMetricFamily(name, meaning, value=dict(values))
