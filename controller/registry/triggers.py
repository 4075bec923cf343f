"""The events that trigger a plan, beside the end of the period."""

from __future__ import annotations

from enum import StrEnum


class Trigger(StrEnum):
    """An event that triggers a plan. The value is its label in the metrics."""

    REGISTRATION = "registration"
    REMOVAL = "removal"
    STAGE_START = "stage start"
    STAGE_END = "stage end"
    SETTINGS = "settings"
    HOSTS = "hosts"
    SWITCH = "switch"
    PERIOD = "period"
    END = "end"
    RETURN = "return"
    NEW_FLOWS = "new flows"
    TARGET_CROSSED = "target crossed"


REPORTED = frozenset({Trigger.END, Trigger.RETURN, Trigger.NEW_FLOWS, Trigger.TARGET_CROSSED})
"""The triggers that come with a host's report."""

UNTIMED = frozenset({Trigger.SWITCH, Trigger.PERIOD})
"""The triggers that come with no request. No latency is measured for them, because there is no time of arrival."""
