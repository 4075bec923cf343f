"""The messages on families: the runs of earlier jobs, and what they say of the next one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from controller.wire.base import Message, Name


class FamilyRun(Message):
    """A run of a job that has ended."""

    job: Name
    """The name of the job."""
    ended_at: float
    """When it ended, in seconds since the Unix epoch."""
    ending: Literal["finished", "aborted", "diverged", "refused"]
    """finished: the run counts. aborted: it was stopped before it had converged, or its end was not reported. diverged:
    its metric became no number. refused: its curve says nothing. Runs that did not finish do not count."""
    reason: str | None
    """Why it does not count. null: it counts."""
    metric: str
    """The name of its metric."""
    direction: Literal["max", "min"]
    """Whether a larger (max) or a smaller (min) value is better."""
    iterations: float
    """The length of the run in iterations."""
    converged: float | None
    """The converged metric: its median over the last tenth of the run. null: it reported none."""
    t90_iteration: float | None
    """The iteration at which 90 % of the converged metric was reached. null: it never was, or the run had not
    converged."""
    t90_share: float | None
    """The same as a share of the run."""
    t95_iteration: float | None
    """The iteration at which 95 % of the converged metric was reached. null: it never was, or the run had not
    converged."""
    t95_share: float | None
    """The same as a share of the run."""
    curve: Annotated[tuple[tuple[float, float], ...], Field(strict=False)]
    """At most 64 pairs of iteration and metric. Each metric is the median of three reports."""


class FamilySummary(Message):
    """A family, and what it says of the next run."""

    name: str
    """The name of the family."""
    user: str | None
    """The Unix user whose runs these are. null: no user was named."""
    host: str | None
    """Where no user was named: the host whose token registered the jobs. null: an operator's token did."""
    kept: int
    """How many runs are kept."""
    counted: int
    """How many of them count: they finished, with the metric of the latest one that did."""
    reliable: bool
    """Whether the runs predict each other well enough for a policy to use them."""
    summary: str
    """What the runs say of the next one, in a sentence. Where they are not reliable, it gives the reason."""


class FamilyList(Message):
    """Body of ``GET /v1/families``."""

    families: Annotated[tuple[FamilySummary, ...], Field(strict=False)]
    """All families that are kept, by name."""


class FamilyState(FamilySummary):
    """A family with its runs."""

    runs: Annotated[tuple[FamilyRun, ...], Field(strict=False)]
    """Its runs, the one that ended first first."""


class FamilyRuns(Message):
    """Body of ``GET /v1/families/{name}``."""

    families: Annotated[tuple[FamilyState, ...], Field(strict=False)]
    """The families of this name, one for each owner."""
