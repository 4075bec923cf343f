"""How long the triggers of plans wait until the rules that they led to are in force."""

from __future__ import annotations

import time
from collections.abc import Iterable

from controller.dataplane.values import Applied
from controller.loop.metrics import Metrics
from controller.registry.triggers import REPORTED, UNTIMED

MOST_LATE = 10_000
"""Remember this many triggers of failed plans, to measure their latency when a later plan is in force."""


class Latencies:
    """Measures plans that are applied. A trigger is its reason, and when it arrived by ``time.monotonic``."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._late: list[tuple[str, float]] = []
        """The triggers of plans that failed: their changes are not in force yet."""

    def keep(self, triggers: Iterable[tuple[str, float]]) -> None:
        """Keep the triggers of a plan that failed until a later one is in force."""
        self._late = [*self._late, *triggers][:MOST_LATE]

    def measure(self, triggers: list[tuple[str, float]], applied: Applied) -> None:
        """Count a plan, and the time of its triggers where no switch refused it."""
        now = time.monotonic()
        self._metrics.plans.inc()
        for reason, _ in triggers:
            self._metrics.plan_causes.labels(cause=reason).inc()
        self._metrics.flow_mods.inc(applied.flow_mods)
        self._metrics.apply_errors.inc(len(applied.errors))
        if applied.errors:
            return
        # The changes of failed plans are in force only now, so their latency ends now.
        triggers, self._late = [*self._late, *triggers], []
        to_rule = {True: self._metrics.report_to_rule, False: self._metrics.change_to_rule}
        for reason, received_at in triggers:
            if reason in UNTIMED:
                continue
            self._metrics.report_to_plan.add(now - received_at)
            if applied.flow_mods:
                to_rule[reason in REPORTED].add(now - received_at)
