"""From a guess to the preset that was recognised later: which of its events are news. Pure."""

from __future__ import annotations

from host_reporter.formats.events import Ended, Event, Point


def handed_over(events: list[Event], reported: float, highest: float) -> list[Event]:
    """Returns the events of a preset that was recognised late, after a guess had ``reported`` so many iterations.

    Where it counts lower, its ``highest`` iteration so far, its points are a new run's. Else those that were reported
    are left out, except the metrics of the last one.
    """
    if highest < reported:
        return [Ended(), *events]
    return [event for event in events if not isinstance(event, Point) or _is_beyond(event, reported)]


def _is_beyond(point: Point, reported: float) -> bool:
    return point.iteration > reported or (point.iteration == reported and point.metric is not None)
