"""Whether the dates in front of lines can be trusted: a container may have another time zone than its host. Pure."""

from __future__ import annotations

SLACK_SECONDS = 120.0
"""A line may be written so long before its file was last changed."""

ZONE_SECONDS = 900.0
"""Time zones differ by multiples of this."""

MAX_ZONE_SECONDS = 26 * 3600.0
"""Two time zones differ by this at most."""


def shift(date: float, modified: float) -> float | None:
    """Returns the seconds to add to the dates of a file whose last date, read as local time, is ``date``.

    ``modified`` is when the file was last written. None: the dates do not fit it, so they are not to be used.
    """
    zone = round((modified - date) / ZONE_SECONDS) * ZONE_SECONDS
    if abs(zone) > MAX_ZONE_SECONDS or abs(modified - date - zone) > SLACK_SECONDS:
        return None
    return zone
