"""The job files, each as the agent would read it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from host_reporter.check.said import Said
from host_reporter.check.verdict import Verdict, missing, note, ok
from host_reporter.jobs.job import JobFound
from host_reporter.jobs.job_file import JobFile
from host_reporter.jobs.jobs_dir import JobsDirectory
from host_reporter.options import Options

CHECK = "job files"
_LATER = float("inf")
"""Look as if all files were written long ago: none is said to be unfinished."""


def check(options: Options) -> Iterator[Verdict]:
    """Yields what each job file says, and what is wrong with it."""
    problems = Said()
    directory = JobsDirectory(options.jobs_dir, options.progress_dir, problems)
    changes = [change for change in directory.scan(0.0, _LATER) if isinstance(change, JobFound)]
    jobs = [change.job for change in changes if isinstance(change.job, JobFile)]
    for text in problems.messages:
        if text.startswith("the folder"):
            yield note(CHECK, text, f"mkdir -p {options.jobs_dir}, if jobs have files here")
        else:
            yield missing(CHECK, text, "repair the file; docs/reference/job-file.md has all fields")
    yield from map(_of_job, jobs)
    if not jobs and not problems.messages:
        yield ok(CHECK, f"there are none in {options.jobs_dir}")


def _of_job(job: JobFile) -> Verdict:
    text = f"{job.path.name} is understood: job {job.id} follows {job.followed}"
    if not _exists(job.followed):
        return ok(CHECK, f"{text}, which is not there yet")
    if not (job.followed.is_file() or job.followed.is_dir()):
        return missing(CHECK, f"{text}, which is no ordinary file", "name the file or folder that the job writes")
    if not os.access(job.followed, os.R_OK):
        return missing(CHECK, f"{text}, which the agent may not read", "run the agent as root, or let it read the file")
    return ok(CHECK, text)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # its folder may not be looked into; reading says so
        return True
