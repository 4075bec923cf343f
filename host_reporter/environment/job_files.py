"""Files of variables for the jobs of this host that have DSCPs of their own: JOB.env, with a line NAME=VALUE for each.

Launchers read such a file when they start a process of the job (``deploy/slurm``, ``deploy/launch``). The agent touches
the file READY as long as it gives each job a file. Where READY is older, a launcher does not wait for the job's file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from controller.job_environment import lines, variables
from controller.wire import HostPlan
from host_reporter.environment.folder import Folder
from host_reporter.notices import Notices

DEFAULT_DIRECTORY = "/run/trainyard/environment"
READY = "ready"
"""The name of a file that is touched now and then. No job's file has this name."""
SUFFIX = ".env"
MODE = "dscp"
"""The mode of a plan in which each job has a DSCP of its own."""
_KEY = "environment"


class JobFiles:
    """The files in the folder ``path``. For one thread; nothing here raises.

    They stay when the agent stops: a job keeps its DSCP, and a process that is started meanwhile needs it as much.
    """

    def __init__(self, path: Path, notices: Notices) -> None:
        self._folder = Folder(path)
        self._notices = notices

    def follow(self, plan: HostPlan) -> None:
        """Make the files what the plan says, and say that they are: call it again now and then."""
        try:
            if plan.mode == MODE:
                self._write(texts(plan))
            else:
                self._folder.clear()
            self._notices.clear(_KEY, f"the files of jobs' variables are in {self._folder.path} again")
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
            self._notices.say(_KEY, f"jobs cannot be told their DSCPs when they are launched: {reason}")

    def _write(self, wanted: Mapping[str, str]) -> None:
        for name, text in wanted.items():
            if self._folder.read(name) != text:
                self._folder.write(name, text)
        self._folder.keep_only({*wanted, READY})
        self._folder.write(READY, "")


def texts(plan: HostPlan) -> dict[str, str]:
    """Returns the text of each file of a plan, by the file's name. Pure."""
    control = plan.acknowledgement_dscp
    return {f"{job.job}{SUFFIX}": _text(lines(variables(job.dscp, control))) for job in plan.jobs}


def _text(each: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in each)
