"""Whether the controller does its work: readiness, problems, settings, files, certificates and streams."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client.core import Metric

from controller.api.calls.state import all_problems, missing_to_be_ready
from controller.api.exposition.families import counters, gauge, gauges, info
from controller.api.services import Services

_VERSION = version("trainyard")


def health(services: Services) -> Iterator[Metric]:
    """Yields the families on the controller as a whole."""
    yield info("trainyard_build", "The version of the controller", {"version": _VERSION})
    yield gauge("trainyard_ready", "1 while GET /readyz says so", not missing_to_be_ready(services))
    yield gauge(
        "trainyard_problems", "Problems that GET /v1/status has a sentence of", len(set(all_problems(services)))
    )
    yield gauge(
        "trainyard_paused",
        "1 while an operator has paused: nothing is enforced",
        services.loop.settings.is_paused,
    )
    yield gauge(
        "trainyard_journal_degraded", "1 while the journal cannot be written", services.store.failure is not None
    )
    yield gauge(
        "trainyard_audit_degraded", "1 while the audit file cannot be written", services.audit.failure is not None
    )
    yield counters(
        "trainyard_audit_lost_records",
        "Records of the audit that were lost since the start",
        (),
        [((), services.audit.lost)],
    )
    yield gauge(
        "trainyard_event_streams", "Clients that follow GET /v1/events now", sum(services.feed.streams.values())
    )
    yield gauges(
        "trainyard_certificate_expiry_timestamp_seconds",
        "When a certificate, an authority's certificate or a list of revoked certificates expires, in seconds since "
        "1970, by what it is used for",
        ("use", "kind"),
        services.certificate_ends().items(),
    )
    yield from _settings(services)


def _settings(services: Services) -> Iterator[Metric]:
    reloader = services.reloader
    if reloader is None:
        return
    yield info("trainyard_settings", "The settings file in force, by its SHA-256", {"sha256": reloader.sha256 or ""})
    yield gauge(
        "trainyard_settings_loaded_timestamp_seconds",
        "When the settings in force were read, in seconds since 1970",
        reloader.loaded_at,
    )
    yield gauge(
        "trainyard_settings_refused",
        "1 while the newest reload was refused, and the settings of before are in force",
        reloader.failure is not None,
    )
    yield gauge(
        "trainyard_settings_differ",
        "1 while a file of the settings has changed on the disk and is not in force",
        bool(reloader.news()),
    )
    yield gauge("trainyard_settings_waiting", "Settings of the file that wait for a restart", len(reloader.waiting))
