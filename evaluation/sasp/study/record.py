"""The record of runs: a line of JSON a run, so that a study that was stopped goes on where it was."""

from __future__ import annotations

from pathlib import Path

from evaluation.sasp.study.runs import Goal, Run, Trained, from_line, to_line


class Record:
    """The runs that a file holds. A run that was trained further has a line more."""

    def __init__(self, path: Path) -> None:
        """Read the file, if it is there. A last line that was not written to its end does not count.

        Raises OSError, ValueError where a line is no run.
        """
        self._path = path
        self._known: dict[str, Trained] = {}
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole)
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                self._note(from_line(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}:{number}: no run of the study: {error}") from error

    def get(self, run: Run, goal: Goal) -> Trained | None:
        """The run, if it was trained up to the goal."""
        known = self._known.get(run.key)
        return known if known is not None and goal.is_met(known.points) else None

    def keep(self, trained: Trained) -> None:
        """Write it down. Raises OSError."""
        self._note(trained)
        with self._path.open("a") as file:
            file.write(to_line(trained) + "\n")

    def _note(self, trained: Trained) -> None:
        known = self._known.get(trained.run.key)
        if known is None or len(known.points) <= len(trained.points):
            self._known[trained.run.key] = trained
