"""Looks through /proc for the processes that a launcher has started. One look is cheap while nothing changes.

A look lists /proc and reads only what is new. A new process is read a few times in its first seconds, because it may
become another program (``exec`` keeps the id and the time of the start) or be moved into a cgroup. After that each
process has its turn now and then: its id may be another process's by now, or it may have called ``exec`` late. The
environment is read once for each program, since a program may write its title over it.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from host_reporter import procfs
from host_reporter.launchers import cgroup_paths
from host_reporter.launchers.combine import sighting_of
from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.launchers.pods import Pods
from host_reporter.notices import Notices
from host_reporter.procfs import PROC, Process, State
from host_reporter.training.launch import READ as JOB_VARIABLES
from host_reporter.training.ranks import READ as RANK_VARIABLES

MAX_PROCESSES = 32_768
"""Look at no more processes than this."""

MAX_READ = 512
"""One look reads at most so many processes; the others have their turn at the next looks."""

MAX_ENVIRONMENT = 128 * 1024
"""Of a process's environment so many bytes are read, and of one variable MAX_VALUE characters."""

MAX_VALUE = 16 * 1024
MAX_COMMAND = 4096

FIRST_LOOKS = (1, 2, 4)
"""A new process is read again so many looks after its first one."""

TURN_LOOKS = 32
"""Each process is read again once in so many looks, one with a job in JOB_TURN_LOOKS."""

JOB_TURN_LOOKS = 4
WHOLE_TURNS = 4
"""At one turn of so many, look at users and cgroups of a process too."""

log = logging.getLogger(__name__)


class Seen(NamedTuple):
    """A process of a job. ``user``: its one user; None: it has the rights of several."""

    process: Process
    parent: int
    user: int | None
    sighting: Sighting
    cgroups: tuple[str, ...] = ()


@dataclass(slots=True)
class _Known:
    """What is known of a process. ``reads``: how often it was read. ``environment``: that of its present program."""

    state: State
    reads: int = 0
    environment: Mapping[str, str] | None = None


class Processes:
    """The processes of jobs on this host. ``look`` never raises; for one thread.

    ``host`` is the name of this host, as the controller knows it.
    """

    def __init__(self, launchers: Iterable[Launcher], host: str, notices: Notices, pods: Pods | None = None) -> None:
        self._launchers = tuple(launchers)
        self._has_rules = any(launcher.precedence is Precedence.RULE for launcher in self._launchers)
        self._host = host
        self._notices = notices
        self.pods = pods or Pods()
        read = frozenset().union(*(launcher.reads for launcher in self._launchers), JOB_VARIABLES, RANK_VARIABLES)
        self._reads = frozenset(name.encode() for name in read)
        self._known: dict[int, _Known] = {}
        self._seen: dict[int, Seen] = {}
        self._again: dict[int, list[int]] = {}
        self._turn: dict[int, None] = {}
        self._job_turn: dict[int, None] = {}
        self._looks = 0
        self._own = os.getpid()
        self.version = 0
        """Another number where what was seen is not as before."""
        self.is_complete = False
        """Whether all processes that were there at the last look were read."""

    @property
    def seen(self) -> Mapping[int, Seen]:
        """The processes of jobs, by their ids."""
        return self._seen

    def look(self) -> None:
        """See what has changed."""
        self._looks += 1
        present = {int(name) for name in os.listdir(PROC) if name.isdigit()}  # noqa: PTH208 - pathlib costs as much again
        present.discard(self._own)
        for pid in self._known.keys() - present:
            del self._known[pid]
            self._forget(pid)
        new = sorted(present - self._known.keys())[: MAX_PROCESSES - len(self._known)]
        due = [pid for pid in self._again.pop(self._looks, ()) if pid in self._known]
        left = MAX_READ
        for pid in itertools.islice(itertools.chain(new, due, self._turns()), left):
            self._read(pid)
        for pid in due[max(left - len(new), 0) :]:
            self._again.setdefault(self._looks + 1, []).append(pid)
        self.is_complete = len(new) <= left and self._looks > FIRST_LOOKS[0]

    def parent_of(self, pid: int) -> int:
        """Returns the id of a process's parent, as it was when the process was read; 0: it is not known."""
        known = self._known.get(pid)
        return known.state.parent if known is not None else 0

    def children_of(self, parent: int) -> list[int]:
        """Returns the ids of a process's children, as they were when these were read."""
        return [pid for pid, known in self._known.items() if known.state.parent == parent]

    def _turns(self) -> list[int]:
        """Returns the processes whose turn it is to be read again."""
        due = []
        for turn, looks, is_member in ((self._turn, TURN_LOOKS, False), (self._job_turn, JOB_TURN_LOOKS, True)):
            for pid in list(itertools.islice(turn, len(turn) // looks + 1)):
                del turn[pid]
                # One that has ended, or is of a job by now or no longer, leaves this queue.
                if pid in self._known and (pid in self._seen) == is_member:
                    turn[pid] = None
                    due.append(pid)
        return due

    def _read(self, pid: int) -> None:
        state = procfs.state_of(pid)
        if state is None:
            # A zombie holds nothing, and is there until its parent asks for it.
            self._forget(pid)
            return
        known = self._known.get(pid)
        if known is None or known.state.process != state.process:
            self._forget(pid)
            known = self._known[pid] = _Known(state)
            self._turn[pid] = None
        elif known.state.image != state.image:
            known.environment = None
        known.state = state
        if known.reads < len(FIRST_LOOKS):
            self._again.setdefault(self._looks + FIRST_LOOKS[known.reads], []).append(pid)
        known.reads += 1
        # Most turns only make sure that it is the same program.
        if known.environment is None or known.reads <= len(FIRST_LOOKS) + 1 or known.reads % WHOLE_TURNS == 0:
            self._see(known)

    def _see(self, known: _Known) -> None:
        process = known.state.process
        facts = self._facts(known)
        sighting = sighting_of(facts, self._launchers) if facts is not None else None
        if facts is None or sighting is None:
            self._forget(process.pid)
            return
        seen = Seen(process, known.state.parent, facts.user, sighting, facts.cgroups)
        if self._seen.get(process.pid) != seen:
            self._seen[process.pid] = seen
            self._job_turn[process.pid] = None
            self.version += 1

    def _forget(self, pid: int) -> None:
        if self._seen.pop(pid, None) is not None:
            self.version += 1
            if pid in self._known:
                self._turn[pid] = None

    def _facts(self, known: _Known) -> ProcessFacts | None:
        """Returns what is known of a process; None where it is gone, is of no interest, or may not be looked at."""
        process = known.state.process
        try:
            if known.environment is None:
                known.environment = self._environment(process.pid)
            cgroups = cgroup_paths.parse(_text(process.pid, "cgroup", MAX_COMMAND))
        except PermissionError:
            # A process whose program is being loaded is closed for a moment even to root.
            if known.reads > len(FIRST_LOOKS):
                self._notices.say(
                    "processes",
                    "the environment of some processes may not be looked at, so jobs among them are not found; the "
                    "agent needs CAP_SYS_PTRACE",
                )
            return None
        except OSError:
            return None
        if not known.environment and not self._has_rules and cgroup_paths.slurm_group(cgroups) is None:
            return None
        group = cgroup_paths.pod_group(cgroups)
        return ProcessFacts(
            pid=process.pid,
            started=process.started,
            users=frozenset(procfs.users_of(process.pid) or ()),
            cgroups=cgroups,
            environment=known.environment,
            command=_words(process.pid),
            parent_command=_words(known.state.parent),
            pod=self.pods.find(group.uid) if group is not None else None,
            host=self._host,
        )

    def _environment(self, pid: int) -> dict[str, str]:
        """Returns the variables that a launcher reads. Raises OSError."""
        with open(f"{PROC}/{pid}/environ", "rb") as file:  # noqa: PTH123 - as above
            entries = file.read(MAX_ENVIRONMENT).split(b"\0")
        environment = {}
        for entry in entries:
            name, _, value = entry.partition(b"=")
            if name in self._reads:
                environment[name.decode()] = value[:MAX_VALUE].decode(errors="replace")
        return environment


def _text(pid: int, name: str, most: int) -> str:
    with open(f"{PROC}/{pid}/{name}", "rb") as file:  # noqa: PTH123 - as above
        return os.fsdecode(file.read(most))


def _words(pid: int) -> tuple[str, ...]:
    """Returns the arguments of a process; empty where it is gone."""
    try:
        return tuple(_text(pid, "cmdline", MAX_COMMAND).split("\0")[:-1])
    except OSError:
        return ()
