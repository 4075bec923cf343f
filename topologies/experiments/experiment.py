"""An experiment as a value: the testbed, the jobs and their arrivals. The lab runs it, and the trainers read it.

An experiment's file is one JSON or YAML document of ``Experiment``. Unknown fields are refused.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from controller.code_points import Preset
from controller.wire import Message, MetricValue, Name
from sasp.core.errors import SaspError
from sasp.core.scheme import Scheme, parse
from simulator.workloads import curves
from topologies.experiments.addressing import MOST_RAILS, Families
from topologies.experiments.curve_plan import CurvePlan, rows_of
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.family_plan import FamilyName
from topologies.experiments.study_plan import StudyPlan, TrialPlan, fault

PLAIN = Scheme("bsp", sending="after")
FABRIC_SWITCHES = 2
"""A leaf-spine has this many leaves and spines by default."""


class JobPlan(Message):
    """One job to be trained.

    With ``architecture`` ps, ``hosts[0]`` runs the parameter server, and each other host a worker. In every iteration
    each worker computes, pushes ``model_bytes`` to the server and pulls as many back (BSP). With ring, ``hosts`` are
    the peers in ring order. In every iteration each peer computes, then sends 2 (n-1)/n x ``model_bytes`` to its
    successor in 2 (n-1) steps. Rank 0 (``hosts[0]``) writes the training log. Task i listens on ``port`` at its host;
    of a ps job only the server listens. ``curve`` is a recorded curve's name, or the rows of a curve. It is replayed
    over the whole run: the metric of iteration k (from 1) of n is row ceil(k x rows / n). ``arrival`` is in seconds
    from the experiment's start. ``sync`` is the synchronisation of a ps job: bsp, ssp:S or asp, each also with +overlap
    or +sasp (asp+sasp:S). ``pulls`` says how a worker of a ps job under bsp gets the model (None: sent). If it is sent,
    the server sends it as soon as all have pushed. If it is asked for, the server says that all have pushed, and each
    worker asks then, as in TensorFlow 1. ``target`` is the accuracy that the job declares as done; t90 is then the time
    to it. ``family`` is the family that the job declares; without it the job has none.

    A job with ``trial`` belongs to a study. It arrives when the study's tuner calls it, and the call names its curve.
    ``arrival`` and ``curve`` of the plan have no effect on it.
    """

    id: Name
    arrival: Annotated[float, Field(ge=0, le=1e6)]
    architecture: Literal["ps", "ring"]
    hosts: Annotated[tuple[Name, ...], Field(min_length=2, max_length=1024, strict=False)]
    port: Annotated[int, Field(ge=1024, le=65535)]
    model: str
    model_bytes: Annotated[int, Field(ge=1, le=10**12)]
    compute_seconds: Annotated[float, Field(ge=0, le=3600)]
    iterations: Annotated[int, Field(ge=1, le=10**7)]
    curve: CurvePlan
    sync: str = "bsp"
    pulls: Literal["sent", "asked"] | None = None
    target: MetricValue | None = None
    trial: TrialPlan | None = None
    family: FamilyName = ""

    @property
    def rows(self) -> tuple[float, ...]:
        """The rows of ``curve``. Raises simulator.workloads.curves.CurveError where no curve has its name."""
        return rows_of(self.curve)

    @property
    def metrics(self) -> tuple[float, ...]:
        """The metric of each iteration. Raises simulator.workloads.curves.CurveError where no curve has its name."""
        return curves.replay(self.rows, self.iterations)

    @property
    def scheme(self) -> Scheme:
        """The scheme that ``sync`` names."""
        return parse(self.sync)

    @model_validator(mode="after")
    def _sync_is_valid(self) -> JobPlan:
        try:
            scheme = self.scheme
        except SaspError as error:
            raise ValueError(f"sync: {error}") from None
        if self.architecture != "ps" and scheme != PLAIN:
            raise ValueError(f"sync: {self.sync} needs a parameter server; a ring is a barrier (bsp)")
        return self

    @model_validator(mode="after")
    def _pulls_are_of_a_server(self) -> JobPlan:
        if self.pulls == "asked" and (self.architecture != "ps" or self.scheme != PLAIN):
            raise ValueError(
                f"pulls: asked is for architecture ps with sync bsp; this job has {self.architecture} with {self.sync}"
            )
        return self

    @model_validator(mode="after")
    def _hosts_differ(self) -> JobPlan:
        if len(set(self.hosts)) != len(self.hosts):
            raise ValueError("a job's hosts must differ")
        return self


class Experiment(Message):
    """Jobs on ``hosts`` servers h1..hN. Every link is limited at both ends, and those of hosts to ``link_bps``.

    The ``topology`` testbed has one switch. leaf_spine has ``leaves`` switches (None: 2) with equally many hosts, h1
    and its neighbours on the first. Each leaf has a link to each of ``spines`` switches (None: 2) at ``uplink_bps``
    (None: ``link_bps``). A testbed with several ``rails`` has a switch for each, and each host an interface. Of all
    that a job sends, each rail carries an equal part.

    ``addresses`` says whether hosts have addresses of IPv4, of IPv6 or of both, where jobs use them in turn. ``queues``
    is the number of queues at each switch port; there is one job class less. ``dscp`` is the preset of the classes'
    DSCPs (None: pool-2). Jobs that still run after ``limit_seconds`` are stopped and counted as censored. With
    ``processes`` host, one trainer on each host serves all its jobs; with job, each job has a trainer of its own on
    each host, in a cgroup of the job. With ``barriers``, workers of parameter-server jobs record when they come to each
    barrier. ``nic_queue_bytes`` is the size of a queue at a host's NIC (None: the agent's default) in arms where no
    agent orders the NIC by the plan; the plan has its own size. A packet that a host sends is of ``segments`` full
    frames at most (None: 8). The more, the less the emulation costs, and the fewer connections share a link at a time.
    A queue of a switch's port holds ``port_packets`` of them (None: a few hundred KB, as in a commodity switch). TCP
    sends nothing again before ``rto_min_seconds`` (None: Linux's 0.2).
    With ``processors`` so many tasks of a host compute at full speed at once; where there are more, they share (None:
    nobody slows others). ``studies`` are hyper-parameter searches, whose trials are among the jobs. ``earlier`` are the
    jobs that had ended before the experiment began, oldest first: the controller knows them from its start on.
    """

    name: Name
    seed: int = 0
    hosts: Annotated[int, Field(ge=2, le=200)] = 13
    link_bps: Annotated[float, Field(ge=1e5, le=1e11)] = 100e6
    topology: Literal["testbed", "leaf_spine"] = "testbed"
    leaves: Annotated[int, Field(ge=1, le=200)] | None = Field(default=None, validate_default=True)
    spines: Annotated[int, Field(ge=1, le=200)] | None = Field(default=None, validate_default=True)
    uplink_bps: Annotated[float, Field(ge=1e5, le=1e11)] | None = Field(default=None, validate_default=True)
    rails: Annotated[int, Field(ge=1, le=MOST_RAILS)] = 1
    addresses: Families = "ipv4"
    queues: Annotated[int, Field(ge=2, le=8)] = 8
    dscp: Preset | None = None
    period_seconds: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    jobs: Annotated[tuple[JobPlan, ...], Field(min_length=1, max_length=1000, strict=False)]
    limit_seconds: Annotated[float, Field(gt=0, le=86400)] = 600.0
    processes: Literal["host", "job"] = "host"
    barriers: bool = False
    nic_queue_bytes: Annotated[int, Field(ge=2 * 64 * 1024, le=2**30)] | None = None
    segments: Annotated[int, Field(ge=2, le=42)] | None = None
    port_packets: Annotated[int, Field(ge=1, le=65536)] | None = None
    rto_min_seconds: Annotated[float, Field(ge=0.2, le=60)] | None = None
    processors: Annotated[int, Field(ge=1, le=1024)] | None = None
    studies: Annotated[tuple[StudyPlan, ...], Field(max_length=100, strict=False)] = ()
    earlier: Annotated[tuple[EarlierJob, ...], Field(max_length=1000, strict=False)] = ()

    @field_validator("leaves", "spines", "uplink_bps")
    @classmethod
    def _fits_the_topology(cls, value: float | None, info: ValidationInfo) -> float | None:
        """Returns the value, or its default, for a leaf-spine; None for the testbed."""
        topology = info.data.get("topology")
        if topology == "testbed" and value is not None:
            raise ValueError("is for topology: leaf_spine; the testbed has one switch")
        if topology == "leaf_spine" and value is None:
            link_bps: float | None = info.data.get("link_bps")
            return link_bps if info.field_name == "uplink_bps" else FABRIC_SWITCHES
        return value

    @field_validator("leaves")
    @classmethod
    def _leaves_have_as_many_hosts_each(cls, leaves: int | None, info: ValidationInfo) -> int | None:
        hosts = info.data.get("hosts")
        if leaves is not None and hosts is not None and hosts % leaves:
            raise ValueError(f"{hosts} hosts cannot be shared evenly by {leaves} leaves; hosts = leaves x hosts a leaf")
        return leaves

    @field_validator("rails")
    @classmethod
    def _rails_are_those_of_the_testbed(cls, rails: int, info: ValidationInfo) -> int:
        if rails > 1 and info.data.get("topology") == "leaf_spine":
            raise ValueError("several rails are for topology: testbed; a leaf_spine has one")
        return rails

    @field_validator("processors")
    @classmethod
    def _processors_are_of_tasks_that_share(cls, processors: int | None, info: ValidationInfo) -> int | None:
        if processors is None:
            return None
        if info.data.get("processes") == "job":
            raise ValueError("is for processes: host; the tasks of several processes cannot share")
        apart = next((job for job in info.data.get("jobs", ()) if job.scheme != PLAIN), None)
        if apart is not None:
            raise ValueError(f"is for jobs with sync bsp; job {apart.id} has {apart.sync}")
        return processors

    @property
    def trained(self) -> int:
        """The number of jobs that are trained. A study does not train all of its jobs."""
        return sum(job.trial is None for job in self.jobs) + sum(sum(study.sizes) for study in self.studies)

    @model_validator(mode="after")
    def _studies_have_their_jobs(self) -> Experiment:
        names = [study.name for study in self.studies]
        if len(set(names)) < len(names):
            raise ValueError(f"two studies are called the same: {', '.join(names)}")
        if (wrong := fault(self.studies, ((job.id, job.iterations, job.trial) for job in self.jobs))) is not None:
            raise ValueError(wrong)
        return self

    @model_validator(mode="after")
    def _is_consistent(self) -> Experiment:
        names = {f"h{i}" for i in range(1, self.hosts + 1)}
        ids = {job.id for job in self.earlier}
        if len(ids) < len(self.earlier):
            raise ValueError("earlier: two jobs have the same id")
        ports: set[tuple[str, int]] = set()
        for job in self.jobs:
            if job.id in ids:
                raise ValueError(f"two jobs are called {job.id}")
            ids.add(job.id)
            if unknown := set(job.hosts) - names:
                raise ValueError(f"job {job.id}: unknown hosts {sorted(unknown)}; there are h1..h{self.hosts}")
            for host in job.hosts if job.architecture == "ring" else job.hosts[:1]:
                if (host, job.port) in ports:
                    raise ValueError(f"job {job.id}: port {job.port} on {host} is taken by another job")
                ports.add((host, job.port))
        return self
