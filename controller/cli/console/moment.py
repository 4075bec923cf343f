"""The state of a replay at a moment, as events that lead to it: a page goes on from there and reads nothing before.

Each event changes it as ``controller/console/js/data/state.js`` changes the state of a page, and the same numbers bound
it. What a recording says is not trusted: an event that is not as a controller tells it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

LOG_LENGTH = 2000
CLASS_LOG_LENGTH = 500
POINTS = 256
"""The bounds of the page's log, of a job's changes of class, and of the line of its metric."""
_OF_PARTS = ("progress", "description")
_Event = Mapping[str, Any]


class Moment:
    """The state after the events so far. Its size depends on how many jobs, hosts and switches there are."""

    def __init__(self) -> None:
        self._plan: dict[str, Any] | None = None
        self._planned_at = 0.0
        self._settings: dict[str, Any] | None = None
        self._jobs: dict[str, dict[str, Any]] = {}
        """The event of each job that says all that its events have said."""
        self._named: dict[tuple[str, str], list[_Event]] = {}
        """The last events of each stage, host and switch. An event of its removal stays before those after it."""
        self._problems: dict[str, _Event] = {}
        self._log: list[_Event] = []
        self._lines: dict[str, list[list[float]]] = {}
        self._classes: dict[str, list[list[Any]]] = {}

    def apply(self, event: _Event) -> None:
        """Change the state by an event."""
        change = _CHANGES.get(event["event"])
        if change is None or change(self, event, event["data"]):
            self._log.append(brief(event))
            del self._log[:-LOG_LENGTH]

    def document(self) -> dict[str, Any]:
        """Returns what ``restore`` of the page's state takes."""
        events: list[_Event] = []
        if self._plan is not None:
            events.append({"event": "plan", "time": self._planned_at, "data": self._plan})
        if self._settings is not None:
            events.append({"event": "settings", "time": 0.0, "data": self._settings})
        events += self._jobs.values()
        events += (event for those in self._named.values() for event in those)
        events += self._problems.values()
        return {
            "events": events,
            "log": self._log,
            "lines": list(self._lines.items()),
            "classes": list(self._classes.items()),
        }

    def _take_plan(self, event: _Event, data: _Event) -> bool:
        classes = data.get("classes")
        if not isinstance(classes, dict):
            return False
        self._plan = {**(self._plan or {}), **data}
        self._planned_at = event["time"]
        for name, job in self._jobs.items():
            job["data"]["service_class"] = classes.get(name)
        self._note_classes(classes, event["time"])
        return True

    def _take_job(self, event: _Event, data: _Event) -> bool:
        name, state = data.get("id"), data.get("state")
        if not isinstance(name, str):
            return False
        if state == "removed":
            self._jobs.pop(name, None)
            self._lines.pop(name, None)
            return True
        job = self._jobs.setdefault(name, {"event": "job", "time": event["time"], "data": {}})
        before = job["data"]
        parts = {part: _merged(before.get(part), data.get(part)) for part in _OF_PARTS}
        job["data"] = {**before, **data, **parts}
        self._note_point(name, parts["progress"] or {})
        return bool(before.get("state") != state)

    def _take_settings(self, _event: _Event, data: _Event) -> bool:
        self._settings = {**(self._settings or {}), **data}
        return True

    def _take_named(self, event: _Event, data: _Event) -> bool:
        key = (event["event"], str(data.get("name" if event["event"] == "host" else "id")))
        past = [told for told in self._named.get(key, [])[:1] if told["data"].get("state") == "removed"]
        if data.get("state") == "removed":
            self._named.pop(key, None)
            past = []
        self._named[key] = [*past, event]
        return True

    def _take_switch(self, event: _Event, data: _Event) -> bool:
        key = ("switch", str(data.get("dpid")))
        before = self._named[key][0]["data"] if key in self._named else {}
        self._named[key] = [{**event, "data": {**before, **data}}]
        return True

    def _take_problem(self, event: _Event, data: _Event) -> bool:
        head = str(data.get("problem")).partition(": ")[0]
        self._problems.pop(head, None)
        if data.get("state") == "appeared":
            self._problems[head] = event
        return True

    def _note_point(self, name: str, progress: _Event) -> None:
        done, metric = progress.get("iterations_done", 0), progress.get("last_metric")
        if not isinstance(metric, int | float) or not isinstance(done, int | float):
            return
        line = self._lines.setdefault(name, [])
        if line and line[-1][0] == done:
            return
        if line and line[-1][0] > done:
            line.clear()
        line.append([done, metric])
        if len(line) > POINTS:
            self._lines[name] = [point for i, point in enumerate(line) if i % 2 == 0 or i == len(line) - 1]

    def _note_classes(self, classes: Mapping[str, Any], time: float) -> None:
        """Note the changes of classes: of a job that is not in the plan any more, None."""
        for name, service in classes.items():
            log = self._classes.setdefault(name, [])
            if not log or log[-1][1] != service:
                log.append([time, service])
                del log[:-CLASS_LOG_LENGTH]
        for name in [name for name in self._classes if name not in classes]:
            log = self._classes[name]
            if name not in self._jobs:
                del self._classes[name]
            elif log[-1][1] is not None:
                log.append([time, None])
                del log[:-CLASS_LOG_LENGTH]


_CHANGES: Mapping[str, Callable[[Moment, _Event, _Event], bool]] = {
    "plan": Moment._take_plan,
    "job": Moment._take_job,
    "stage": Moment._take_named,
    "host": Moment._take_named,
    "switch": Moment._take_switch,
    "settings": Moment._take_settings,
    "problem": Moment._take_problem,
}
"""What each kind of event changes. A change returns False where the event is not worth a line of its own."""


def brief(event: _Event) -> _Event:
    """Returns of an event what its line in the log says. A plan has more than a line for each of its jobs."""
    data = event["data"]
    if event["event"] == "plan":
        return {**event, "data": {name: value for name, value in data.items() if name not in ("order", "classes")}}
    if event["event"] == "job":
        return {**event, "data": {"id": data.get("id"), "state": data.get("state")}}
    return event


def _merged(before: dict[str, Any] | None, after: object) -> dict[str, Any] | None:
    """Returns what both say, and what the later one says of the same; None where neither says anything."""
    if not isinstance(after, dict):
        return before
    return after if before is None else before | after
