"""Why a plan is made, beside the period's end."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """What triggers a plan; the value is its label in the metrics."""

    REGISTRATION = "registration"
    REMOVAL = "removal"
    STAGE_START = "stage start"
    STAGE_END = "stage end"
    SETTINGS = "settings"
    SWITCH = "switch"
    PERIOD = "period"
    END = "end"
    RETURN = "return"
    NEW_FLOWS = "new flows"
    TARGET_CROSSED = "target crossed"


REPORTED = frozenset({Cause.END, Cause.RETURN, Cause.NEW_FLOWS, Cause.TARGET_CROSSED})
"""What comes with a host's report."""

UNTIMED = frozenset({Cause.SWITCH, Cause.PERIOD})
"""What comes with no call, so that no arrival is measured from."""
