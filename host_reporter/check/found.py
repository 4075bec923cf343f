"""The jobs that are found on this host: by which launcher, where the output of each is, and what can be read of it.

It looks as the agent does, and opens no file that the agent would not. What is wrong with a job is no fault of the
host, so nothing here counts as missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from host_reporter.check.said import Said
from host_reporter.check.verdict import Verdict, note, ok
from host_reporter.found import found_jobs
from host_reporter.jobs.found.found_jobs import UPDATE_SECONDS, FoundJobs
from host_reporter.jobs.found.job import FoundJob
from host_reporter.jobs.found.silence import HELP
from host_reporter.jobs.job import Job, JobFound
from host_reporter.jobs.jobs_dir import JobsDirectory
from host_reporter.options import Options
from host_reporter.readers.log_source import HINT
from host_reporter.readers.whole import Whole, read_whole

CHECK = "found jobs"
LEAST_LOOKS = 9
"""Look at least so often: a process whose program is being loaded is closed for a moment, even to root."""
MOST_LOOKS = 100
GAP_SECONDS = 0.02

READ_SECONDS = 0.5
"""Read one job's output for at most so long: its first lines tell the format."""
ALL_SECONDS = 5.0
"""Read the output of all jobs for at most so long. A pod's readiness waits for the check."""

_OUTPUT = "output "
"""The keys of messages on a job's output begin so; the job's own verdict says the same."""


def check(options: Options) -> Iterator[Verdict]:
    """Yields a verdict for each found job, or that none is found."""
    said = Said()
    found = None if options.is_alone else found_jobs(options, said, begin_seconds=0.0)
    if found is None:
        why = "TensorLights runs without a controller" if options.is_alone else "discover names no launcher"
        yield note(CHECK, f"jobs are not found by their processes: {why}", "write job files, or change discover")
        return
    jobs = look(found, _files(options))
    for key, message in said.by_key.items():
        if not key.startswith(_OUTPUT):
            yield note(CHECK, message)
    if not jobs:
        yield ok(CHECK, f"no job runs here that one of these has started: {_names(options)}")
    until = time.monotonic() + ALL_SECONDS
    for job in jobs:
        seconds = min(READ_SECONDS, until - time.monotonic())
        whole = read_whole(job.source(), seconds=seconds) if job.location is not None and seconds > 0 else None
        yield verdict(job, whole)


def look(found: FoundJobs, files: Sequence[Job]) -> list[FoundJob]:
    """Returns the jobs that are found beside those of job files, in the order of their names."""
    jobs: dict[str, FoundJob] = {}
    for number in range(MOST_LOOKS):
        # Each look is so long after the one before for the jobs that what has changed is news.
        for change in found.scan(number * UPDATE_SECONDS, time.time(), files):
            if not isinstance(change, JobFound):
                jobs.pop(change.job_id, None)
            elif isinstance(change.job, FoundJob):
                jobs[change.job.id] = change.job
        if number >= LEAST_LOOKS - 1 and found.is_settled:
            break
        time.sleep(GAP_SECONDS)
    return [jobs[name] for name in sorted(jobs)]


def verdict(job: FoundJob, whole: Whole | None) -> Verdict:
    """Returns what is known of a job. ``whole`` is what was read of its output; None: nothing was."""
    name = f"job {job.id} ({_started(job)})"
    if job.location is not None:
        return _of_output(f"{name}: its output is {job.location.shown}", job.location.shown, whole)
    if job.spec.ranks is not None and not job.spec.is_first:
        return ok(CHECK, f"{name}: rank 0 is on another host, where its progress is read")
    return note(CHECK, f"{name}: no file has its output (it prints to a terminal or a pipe)", HELP)


def _of_output(output: str, shown: str, whole: Whole | None) -> Verdict:
    """Returns what was read of a file that is ``shown`` so. ``output`` says which job's it is."""
    if whole is None:
        return ok(CHECK, f"{output}, which the check has not read: there are many jobs")
    if whole.problem is None and whole.matched + whole.unmatched == 0:
        return ok(CHECK, f"{output}, which is empty so far")
    preset = whole.described.preset
    if whole.problem is not None:
        problem = whole.problem.partition(HINT)[0].removeprefix(f"{shown}: ")
        trouble = f"which is not understood so far: {problem}"
    elif preset is None:
        trouble = "whose format is not recognised yet"
    elif whole.described.is_guess:
        trouble = f"read by a guess ({preset})"
    else:
        return ok(CHECK, f"{output}, of the format {preset}")
    return note(CHECK, f"{output}, {trouble}", f"trainyard parse {shown} shows its lines, and what would match")


def _files(options: Options) -> list[Job]:
    """Returns the jobs of job files, which win. What is wrong with them is another check's."""
    directory = JobsDirectory(options.jobs_dir, options.progress_dir, Said())
    return [change.job for change in directory.scan(0.0, float("inf")) if isinstance(change, JobFound)]


def _started(job: FoundJob) -> str:
    spec = job.spec
    if spec.ranks is None:
        return spec.launcher
    return f"{spec.launcher}, {spec.ranks} of {spec.world_size or 'an unknown number of'} ranks here"


def _names(options: Options) -> str:
    return ", ".join(launcher.name for launcher in options.launchers())
