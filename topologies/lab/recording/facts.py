"""Records what a replay shows beside events: the jobs and why they wait, the network, the history, the settings.

The arm measures what the controller does, so it is asked little: for all jobs each few seconds, and after a new plan
for the explanations of some. However long answers take, they take at most ``_SHARE`` of the time.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from topologies.errors import LabError
from topologies.lab.controller_process import ControllerSilentError
from topologies.lab.recording.events import finish

FACTS = "facts.json"
EXPLANATIONS = "explanations.jsonl"
MOST_EXPLAINED = 32
"""Ask for the explanations of at most this many jobs of a plan."""
_JOBS_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
_SHARE = 1 / 50
_STOP_SECONDS = 10.0
_RUNNING = ("waiting", "running")

Ask = Callable[[str], Any]
"""Returns the JSON at a path of the API. Raises LabError where there is none, and ControllerSilentError where the
controller does not answer."""


class FactsRecorder:
    """Asks the controller in a thread, from ``start`` to ``ask_last``. ``title`` names the arm."""

    def __init__(self, ask: Ask, folder: Path, title: str) -> None:
        self._ask = ask
        self._title = title
        self._facts = folder / FACTS
        self._explanations = folder / EXPLANATIONS
        self._part = folder / f"{EXPLANATIONS}.part"
        self._planned: tuple[str, ...] = ()
        """The jobs of a plan that nobody has asked for yet."""
        self._jobs: dict[str, Any] = {}
        self._next_jobs = 0.0
        self._known: dict[str, Any] = {}
        """The latest explanation of each job."""
        self._last: dict[str, Any] = {}
        self._ended_at = time.time()
        self._has_news = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="facts", daemon=True)

    def start(self) -> None:
        """Begin to ask. The controller may start later."""
        self._part.touch()
        self._thread.start()

    def note(self, event: str) -> None:
        """An event has come, as JSON. It returns at once."""
        document = json.loads(event)
        if document["event"] == "plan":
            jobs = [job for band in document["data"]["order"] for job in band]
            self._planned = tuple(jobs[:MOST_EXPLAINED])
            self._has_news.set()

    def ask_last(self, zero: float) -> None:
        """Ask what the controller knows at the end, and no more after that. Call it before the controller ends.

        ``zero``: the start of the experiment, in seconds since the epoch, from which the history is asked for.
        """
        self._end()
        self._ended_at = time.time()
        with contextlib.suppress(LabError):
            self._ask_jobs()
            for name, query in (("network", ""), ("history", f"?since={zero:.3f}"), ("status", ""), ("settings", "")):
                self._last[name] = self._ask(f"/v1/{name}{query}")

    def stop(self, zero: float) -> None:
        """Write the files, with times in seconds since ``zero``, the start of the experiment. Raises OSError."""
        self._end()
        if "history" in self._last:
            self._last["history"]["since"] -= zero
        head = {"title": self._title, "started_at": zero, "seconds": self._ended_at - zero, "jobs": self._jobs}
        self._facts.write_text(json.dumps(head | self._last))
        finish(self._part, self._explanations, zero)

    def _end(self) -> None:
        self._is_over.set()
        self._has_news.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while True:
            self._has_news.wait(_JOBS_SECONDS)
            self._has_news.clear()
            if self._is_over.is_set():
                return
            began = time.monotonic()
            with contextlib.suppress(LabError):
                self._turn()
            self._is_over.wait(max(_PAUSE_SECONDS, (time.monotonic() - began) / _SHARE))

    def _turn(self) -> None:
        planned, self._planned = self._planned, ()
        self._explain(planned)
        if time.monotonic() >= self._next_jobs:
            self._next_jobs = time.monotonic() + _JOBS_SECONDS
            self._ask_jobs()

    def _explain(self, jobs: Iterable[str]) -> None:
        with self._part.open("a") as part:
            for job in jobs:
                if self._is_over.is_set():
                    return
                try:
                    explanation = self._ask(f"/v1/jobs/{quote(job)}/explain")
                except ControllerSilentError:
                    raise
                except LabError:
                    continue  # the job has ended
                if explanation != self._known.get(job):
                    self._known[job] = explanation
                    line = {"time": time.time(), "job": job, "explanation": explanation}
                    part.write(json.dumps(line) + "\n")

    def _ask_jobs(self) -> None:
        """Keep the state of each job as it is now, but of a job that has ended as it was before."""
        for state in self._ask("/v1/jobs")["jobs"]:
            if state["state"] in _RUNNING or state["id"] not in self._jobs:
                self._jobs[state["id"]] = state
