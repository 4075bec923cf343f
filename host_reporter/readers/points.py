"""Points of progress that wait: their number is bounded, and old points are thinned first. Pure."""

from __future__ import annotations

from controller.model import Progress

MAX_PENDING = 2_000
"""At most so many points of one job wait to be reported."""


def thin(points: list[Progress], most: int) -> list[Progress]:
    """Returns at most ``most`` of the points (``most`` > 1): every second of the older half goes, until they fit."""
    while len(points) > most:
        half = max(len(points) // 2, 3)
        points = points[:half:2] + points[half:]
    return points
