"""What finds jobs by their processes, as the options ask for it."""

from __future__ import annotations

from pathlib import Path

from host_reporter.discovery import pid_files
from host_reporter.jobs.found.found_jobs import BEGIN_SECONDS, FoundJobs
from host_reporter.jobs.found.output import Outputs
from host_reporter.launchers import registry
from host_reporter.launchers.processes import Processes
from host_reporter.notices import Notices
from host_reporter.options import Options
from host_reporter.readers.auto import auto_source


def found_jobs(options: Options, notices: Notices, *, begin_seconds: float = BEGIN_SECONDS) -> FoundJobs | None:
    """Returns what finds jobs whose processes have lasted ``begin_seconds``; None where no jobs are to be found."""
    for name, reason in registry.broken().items():
        notices.say(f"launcher {name}", f"jobs of launcher {name} are not found: {reason}")
    launchers = options.launchers()
    if not launchers:
        return None
    processes = Processes(launchers, options.host, notices)
    outputs = Outputs(options.progress_dir, processes)
    return FoundJobs(processes, outputs, notices, read=auto_source, pid_of=_pid_of, begin_seconds=begin_seconds)


def _pid_of(file: Path) -> int | None:
    """Returns the process that a pid file names; None: it names none."""
    try:
        return pid_files.read(file).pid
    except pid_files.PidFileError:
        return None
