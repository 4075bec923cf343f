"""The agent of each host: it reports the progress of jobs and marks their traffic by the plan.

A training script needs two lines of it::

    from host_reporter import progress
    progress("my-job").report(iteration=12, metric=0.81)
"""

from host_reporter.training.progress_file import ProgressFile, progress

__all__ = ["ProgressFile", "progress"]
