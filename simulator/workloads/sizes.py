"""How large a generated workload may be: larger ones would take all memory before anything is simulated."""

from __future__ import annotations

from simulator.errors import InputError

MAX_REPORTS = 20_000_000
"""The learning curves of all jobs have at most so many points, because each is held in memory."""


def check_reports(reports: int) -> None:
    """Raises InputError where the jobs of a workload would have more points on their learning curves than that."""
    if reports > MAX_REPORTS:
        raise InputError(
            f"jobs and iterations: together up to {reports} reports, and memory holds {MAX_REPORTS}; take fewer jobs, "
            "or shorter runs"
        )
