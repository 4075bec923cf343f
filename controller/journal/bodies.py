"""The bodies of the registry's records in the journal, checked when they are read: a damaged one must be found then."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from controller.wire import Bytes, JobSpec, Name, TcpPort

Time = float
Count = Annotated[int, Field(ge=0)]


class Body(BaseModel):
    """Base of every body: no unknown fields, no NaN, no silent type changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class JobBody(Body):
    """What changes seldom of a job.

    ``since``: nothing that a host knew before is of this run (None: all is). ``registrar``: the host whose token
    registered it (None: an operator's). What has a default here and below is not in older journals.
    """

    spec: JobSpec
    run: Annotated[int, Field(ge=1)]
    arrival: Time
    registered_at: Time
    since: Time | None
    ended_at: Time | None
    lost_since: Time | None = None
    stage: Name | None
    registrar: Name | None = None


class TallyBody(Body):
    """What every report changes of a job, beside its points.

    ``sent``: bytes by host, beside those in ``counts``, the latest counts of each host by name. ``told_by`` is
    JobRecord's. ``measured``: bytes of an iteration, from host to host, as last measured, over how many iterations, and
    by which hosts.
    """

    sent: dict[Name, Bytes]
    counts: dict[Name, tuple[tuple[str, Bytes], ...]] = {}
    last_report: Time | None
    told_by: dict[Name, bool] = {}
    measured: tuple[tuple[Name, Name, Bytes], ...] = ()
    measured_iterations: float = 0.0
    measured_on: tuple[Name, ...] = ()


SeenFlow = tuple[Name, Name, TcpPort | None, TcpPort | None]


class TellerBody(Body):
    """Who told a whole set of a job's connections: the agent's session, and how many links it left out."""

    session: Name
    left_out: Count = 0


class SeenBody(Body):
    """The connections of a job that hosts found: one by one, and as whole sets by the host that told them.

    ``tellers``: by the same hosts, who told; a set of an older journal has none.
    """

    flows: tuple[SeenFlow, ...]
    found: dict[Name, tuple[SeenFlow, ...]] = {}
    tellers: dict[Name, TellerBody] = {}


class HostBody(Body):
    """A host: what it marks, its clock, and by session the batches that were taken: up to a number, and some after."""

    sessions: tuple[tuple[Name, Count, tuple[Count, ...]], ...]
    clock: tuple[float, ...]
    strays: tuple[float, ...]
    marks_acknowledgements: bool = False


class TombstoneBody(Body):
    """A job that was removed: how many runs it had, and when it went."""

    run: Annotated[int, Field(ge=1)]
    gone_at: Time


class StageBody(Body):
    """A stage that an operator made."""
