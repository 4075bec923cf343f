"""When the output of a found job is looked for, and what is said where there is none."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from host_reporter.jobs.found.group import Group
from host_reporter.jobs.found.launch_state import LaunchState
from host_reporter.jobs.found.output import Outputs
from host_reporter.jobs.found.silence import why_silent
from host_reporter.jobs.found.working_folder import metrics_below, working_folder
from host_reporter.jobs.job import Job
from host_reporter.launchers.processes import Seen
from host_reporter.notices import Notices
from host_reporter.procfs import began_at
from host_reporter.readers.folder_stamp import FolderStamp
from host_reporter.readers.location import Location

SEARCH_SECONDS, MOST_SEARCH_SECONDS = 1.0, 30.0
"""Look for a job's output after this time, then after twice the time, and so on, up to the second number."""

YOUNG_SECONDS = 60.0
"""Look after the first time again and again while a job is so young: a run of seconds may open its file late."""

LOOK_BELOW_SECONDS = 10.0
"""Look below the working folder at most this often, because that costs more."""

LOOK_BUDGET_SECONDS = 0.02
"""Look for outputs for so much processor time in one look; the other jobs have their turn at the next one."""

SILENT_SECONDS = 30.0
"""Log that a job has no output which can be read after this time."""


class OutputSearch:
    """Looks for the outputs of jobs. Call ``begin_look`` before ``look`` at each. No method raises."""

    def __init__(self, outputs: Outputs, notices: Notices, *, budget_seconds: float = LOOK_BUDGET_SECONDS) -> None:
        self._outputs, self._notices, self._budget_seconds = outputs, notices, budget_seconds
        self._helpers = FolderStamp()
        self._is_helper_news = True
        self._used = 0.0
        self._groups: Mapping[str, Group] = {}
        self._files: Sequence[Job] = ()
        self._wall = 0.0

    def begin_look(self, groups: Mapping[str, Group], files: Sequence[Job], wall: float) -> None:
        """Note what runs here now. ``wall`` is in seconds since the epoch."""
        self._groups, self._files, self._wall, self._used = groups, files, wall, 0.0
        self._is_helper_news = self._outputs.has_news(self._helpers, wall)

    def forget(self, job: str) -> None:
        """A job is gone."""
        self._notices.clear(f"output {job}")

    def look(self, state: LaunchState, now: float) -> None:
        """Look for the helper's file where its folder has changed, and for other output less and less often."""
        if not state.reads_output:
            return
        location = state.location
        if (self._is_helper_news or state.search_seconds == 0.0) and not state.is_by_helper:
            names = (state.group.told(lambda sighting: sighting.helper), state.group.id)
            location = self._outputs.helper(names, state.group.user) or location
        is_wanted = location is None or self._outputs.is_gone(location)
        if is_wanted and now - state.searched_at >= state.search_seconds and self._used < self._budget_seconds:
            location = self._find(state, now) or location
        if location != state.location:
            state.location, state.is_news = location, True
        self._say_silent(state, is_young=now - state.since < SILENT_SECONDS)

    def _find(self, state: LaunchState, now: float) -> Location | None:
        began = time.thread_time()
        found = self._outputs.find(state.group.first, state.group.unranked)
        if found is None and now - state.looked_below_at >= LOOK_BELOW_SECONDS:
            state.looked_below_at = now
            found = self._below_working_folder(state.group)
        state.searched_at = now
        longer = min(max(state.search_seconds * 2, SEARCH_SECONDS), MOST_SEARCH_SECONDS)
        is_often = found is not None or now - state.since < YOUNG_SECONDS
        state.search_seconds = SEARCH_SECONDS if is_often else longer
        self._used += time.thread_time() - began
        return found

    def _below_working_folder(self, group: Group) -> Location | None:
        """Returns the metrics below the working folder of rank 0, unless another job works there, too."""
        seen = _speaker(group)
        folder = working_folder(seen.process.pid)
        if folder is None or seen.user is None or self._is_shared(group, folder):
            return None
        return metrics_below(seen.process.pid, folder, seen.user, began_at(seen.process, self._wall))

    def _is_shared(self, group: Group, folder: str) -> bool:
        """Returns whether another job has this working folder, or one below it, or a file in it that is followed."""
        others = (other for job, other in self._groups.items() if job != group.id)
        folders = (working_folder(_speaker(other).process.pid) for other in others)
        files = (str(job.followed) for job in self._files if job.followed is not None)
        paths = (path for path in (*folders, *files) if path is not None)
        return any(PurePosixPath(path).is_relative_to(folder) for path in paths)

    def _say_silent(self, state: LaunchState, *, is_young: bool) -> None:
        key = f"output {state.group.id}"
        if state.location is not None:
            self._notices.clear(key, f"job {state.group.id}: its output is {state.location.shown}")
        elif not is_young:
            reason = why_silent(_speaker(state.group).process.pid)
            self._notices.say(key, f"job {state.group.id}: {reason}")


def _speaker(group: Group) -> Seen:
    """Returns the process whose output is that of the job: rank 0, else the oldest one."""
    return (*group.first[:1], *group.members)[0]
