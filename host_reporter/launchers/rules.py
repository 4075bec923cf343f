"""A rule of the operator's own: which processes are a job, by cgroup, user or environment variable. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.launch import job_name


class Rule(Launcher):
    """A rule. All that it gives must hold of a process.

    ``cgroup`` is a path from the hierarchy's root in which ``*`` stands for any text without a slash. Processes in
    groups below it belong to it. ``user`` is a user's number. ``variable`` must be in the environment. The job is
    called after the rule, with the texts of the stars and the variable's value. The operator knows who may make a
    cgroup, so a job that its cgroup alone tells is believed. One with a variable belongs to the user of its processes.
    """

    precedence: ClassVar[Precedence] = Precedence.RULE

    def __init__(
        self, rule: str, *, cgroup: str | None = None, user: int | None = None, variable: str | None = None
    ) -> None:
        self.name = rule
        self._pattern = _pattern(cgroup) if cgroup is not None else None
        self._user = user
        self._variable = variable
        self.reads = frozenset({variable} if variable is not None else ())

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the job of a process that the rule is for."""
        if self._user is not None and facts.user != self._user:
            return None
        parts: list[str] = [self.name]
        group = None
        if self._pattern is not None:
            match = next(filter(None, map(self._pattern.fullmatch, facts.cgroups)), None)
            if match is None:
                return None
            group = match[1]
            parts += [text for text in match.groups()[1:-1] if text]
        if self._variable is not None:
            value = facts.environment.get(self._variable)
            if not value:
                return None
            parts.append(value)
        is_believed = group is not None and self._variable is None
        return Sighting(
            self.name,
            job_name("-".join(parts)),
            trust="cgroup" if is_believed else "environment",
            group=group if is_believed else None,
        )


def _pattern(cgroup: str) -> re.Pattern[str]:
    """Returns the pattern of a cgroup: its path, the text of each star, and what is below it."""
    stars = "([^/]*)".join(map(re.escape, cgroup.rstrip("/").split("*")))
    return re.compile(rf"({stars})(/.*)?")
