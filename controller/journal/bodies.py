"""The bodies of the registry's records in the journal. They are checked when they are read, to find damaged ones."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from controller.families.run import Ending
from controller.wire import (
    Bytes,
    HostDecision,
    HostRequest,
    Iterations,
    JobSpec,
    Label,
    MetricSpec,
    MetricValue,
    Name,
    RunLength,
    TcpPort,
    UserName,
)
from controller.wire.addresses import EndpointName
from controller.wire.base import Unit
from controller.wire.hosts import EnrolmentState
from controller.wire.plans import Dscp

Time = float
Count = Annotated[int, Field(ge=0)]


class Body(BaseModel):
    """Base of every body: no unknown fields, no NaN, no silent type changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class JobBody(Body):
    """The part of a job that seldom changes.

    ``since``: what a host knew before that time is of an earlier run; None: there was none. ``registrar``: the host
    whose token registered the job; None: an operator. Older journals lack the fields with a default here and below.

    ``spec`` of None: the job is joined of its parts, which have records of their own. ``told`` are the lists of hosts
    that these parts tell, by short names. ``dscp`` is the one that the job has for its life; None: it has none.
    """

    spec: JobSpec | None
    told: dict[str, tuple[Name, ...]] = {}
    run: Annotated[int, Field(ge=1)]
    arrival: Time
    registered_at: Time
    since: Time | None
    ended_at: Time | None
    lost_since: Time | None = None
    stage: Name | None
    registrar: Name | None = None
    dscp: Dscp | None = None


class PartBody(Body):
    """What one host knows of a job: the fields of ``controller.declared.parts``' HostPart and Part.

    ``told`` names the list of hosts in the job's record; None: the part tells none.
    """

    host: Name
    began: Time
    by_host: bool
    over: Literal["ended", "removed"] | None
    over_at: Time | None
    launcher: Name
    user: UserName | None
    family: Label | None
    model: Label | None
    metric: MetricSpec | None
    target: MetricValue | None
    iterations: RunLength | None
    unit: Unit | None = None
    world_size: Count | None
    ranks: Count | None
    is_first: bool
    told: str | None
    arrival: Time | None


class TallyBody(Body):
    """The part of a job that every report changes, beside its points, and whether the run has diverged.

    ``counts``: the latest counts of bytes of each host, by name. ``sent``: the bytes of each host that are in no count.
    ``told_by`` is JobRecord.reported_by. ``measured``: bytes of one iteration from host to host, as last measured, over
    ``measured_iterations`` iterations, by the hosts ``measured_on``.
    """

    sent: dict[Name, Bytes]
    counts: dict[Name, tuple[tuple[str, Bytes], ...]] = {}
    last_report: Time | None
    told_by: dict[Name, bool] = {}
    diverged: bool = False
    measured: tuple[tuple[EndpointName, EndpointName, Bytes], ...] = ()
    measured_iterations: float = 0.0
    measured_on: tuple[Name, ...] = ()


SeenFlow = tuple[EndpointName, EndpointName, TcpPort | None, TcpPort | None]


class ReporterBody(Body):
    """The agent's session that reported a set of connections, and how many links it left out."""

    session: Name
    left_out: Count = 0


class SeenBody(Body):
    """The connections of a job that hosts found: ``flows`` one by one, ``found`` as one set a host.

    ``tellers`` has, by the same hosts, the agent that reported the set; older journals lack it.
    """

    flows: tuple[SeenFlow, ...]
    found: dict[Name, tuple[SeenFlow, ...]] = {}
    tellers: dict[Name, ReporterBody] = {}


class HostBody(Body):
    """A host: what it marks, its clock, and the batches merged: by session the last number, and some after a gap."""

    sessions: tuple[tuple[Name, Count, tuple[Count, ...]], ...]
    clock: tuple[float, ...]
    strays: tuple[float, ...]
    marks_acknowledgements: bool = False
    tunnel_ports: tuple[int, ...] = ()


class TombstoneBody(Body):
    """A job that was removed: how many runs it had, and when it was removed."""

    run: Annotated[int, Field(ge=1)]
    gone_at: Time


class DscpBody(Body):
    """A DSCP that jobs can have for their life, that some job had, and that none has now."""

    dscp: Dscp
    freed_at: Time


class StageBody(Body):
    """A stage that an operator put."""


class RunBody(Body):
    """A run that a family keeps: the fields of ``controller.families.run.EarlierRun``, and whose family it is.

    ``user`` and ``host`` are those of ``controller.families.names.Owner``.
    """

    family: str
    user: str | None
    host: Name | None
    job: Name
    began: Time
    ended_at: Time
    ending: Ending
    metric: str
    direction: Literal["max", "min"]
    length: Iterations
    converged: MetricValue | None
    t90: Iterations | None
    t95: Iterations | None
    curve: tuple[tuple[Iterations, MetricValue], ...]
    reason: str | None


class EnrolmentBody(Body):
    """A host that has asked to be added: the fields of ``controller.enrolment.record.Enrolment`` without its name.

    ``site``: the datapath id of its switch, and the number of its port; ``more_sites``: those of its interfaces but the
    first.
    """

    request: HostRequest
    announcement: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    asked_at: Time
    asked_from: str
    state: EnrolmentState
    decision: HostDecision | None
    decided_at: Time | None
    decided_by: str | None
    site: tuple[Count, Count] | None
    found_by: Literal["announcement", "operator"] | None
    more_sites: dict[str, tuple[Count, Count]] = {}
