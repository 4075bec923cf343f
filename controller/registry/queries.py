"""The questions that the registry answers: jobs, stages, families and agents as they are now. No answer changes any."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from controller.declared.batch import InterfacePart
from controller.declared.declared import Declared
from controller.declared.job_flows import PairKey, protocols_of
from controller.endpoints.jobs import JobsOnInterfaces
from controller.endpoints.servers import Servers
from controller.families.history import FamilyHistory
from controller.families.names import FamilyKey
from controller.model import Host, Job, Snapshot, Stage, Switch, TrafficProtocol
from controller.pieces import Steps
from controller.registry.agents.leases import AgentWord, Leases
from controller.registry.job.record import JobRecord
from controller.registry.job.view import JobDescription, JobProgress, JobView
from controller.registry.jobs import Jobs
from controller.registry.stages import Stages


class Queries:
    """The questions about ``jobs``, ``stages``, and the agents of ``hosts``."""

    def __init__(self, hosts: Mapping[str, Host], jobs: Jobs, stages: Stages, leases: Leases) -> None:
        self._set_hosts(hosts)
        self._jobs = jobs
        self._stages = stages
        self._leases = leases

    def _set_hosts(self, hosts: Mapping[str, Host]) -> None:
        self.hosts = dict(hosts)
        """The interfaces of all servers by name."""
        self._on_interfaces = JobsOnInterfaces(self.hosts)

    @property
    def servers(self) -> Servers:
        """The servers, each with its interfaces."""
        return self._on_interfaces.servers

    # Jobs --------------------------------------------------------------------------------------------------------

    def job_state(self, job_id: str, service_class: int | None = None) -> JobView:
        """Returns a job as the API shows it; raises NotFound."""
        return self._view(self._jobs.find(job_id), service_class, self.users_of_dscps())

    def job_states(self, classes: Mapping[str, int]) -> Iterator[JobView]:
        """Yields all jobs, those that ended lately included; each as it is at that moment."""
        users = self.users_of_dscps()
        return (self._view(job, classes.get(job.id), users) for job in list(self._jobs))

    def users_of_dscps(self) -> Mapping[int | None, int]:
        """Returns how many jobs that have not ended have each DSCP, where jobs have their own."""
        return self._jobs.dscps.users()

    def _view(self, job: JobRecord, service_class: int | None, users: Mapping[int | None, int]) -> JobView:
        return JobView.of(
            job,
            service_class,
            acknowledgement_dscp=self._jobs.dscps.acknowledgements,
            sharing=users.get(job.dscp, 0) if job.dscp is not None else 0,
        )

    def has_job(self, job_id: str) -> bool:
        """Returns whether there is a job of this name, which may have ended lately."""
        return job_id in self._jobs

    def progress(self, job_id: str) -> JobProgress | None:
        """Returns how a job fares; None where there is none."""
        job = self._jobs.get(job_id)
        return JobProgress.of(job) if job is not None else None

    def description(self, job_id: str) -> JobDescription | None:
        """Returns what a job is; None where there is none."""
        job = self._jobs.get(job_id)
        return JobDescription.of(job) if job is not None else None

    def progress_and_bytes(self) -> Iterator[tuple[JobProgress, float | None]]:
        """Yields how each job that has not ended fares, and the bytes that it has sent; None: nobody counts them."""
        return ((JobProgress.of(job), job.sent.total) for job in self._jobs.live())

    def live_job(self, job_id: str) -> Job | None:
        """Returns a job that runs, with traffic between servers; None where there is none."""
        job = self._jobs.get(job_id)
        return job.value() if job is not None and job.ended_at is None else None

    def job_hosts(self, job_id: str) -> frozenset[str] | None:
        """Returns the hosts of a job; None where there is no such job."""
        return self._jobs.hosts_of(job_id)

    def job_user(self, job_id: str) -> str | None:
        """Returns the user of a job; None where none was named, or there is no such job."""
        return self._jobs.user_of(job_id)

    def running(self) -> Iterator[tuple[str, Declared]]:
        """Yields the id and the spec of each job that has not ended, those that wait for their hosts included."""
        jobs = (*self._jobs.live(), *self._jobs.waiting_for_host())
        return ((job.id, job.spec) for job in jobs if job.ended_at is None)

    def part_hosts(self, job_id: str) -> frozenset[str]:
        """Returns the hosts where a job runs that is joined of parts; of another job none."""
        job = self._jobs.get(job_id)
        return job.parts.running if job is not None and job.parts is not None else frozenset()

    def jobs_on(self, hosts: Collection[str]) -> dict[str, list[str]]:
        """Returns, by host, the running jobs on these hosts."""
        found: dict[str, list[str]] = {}
        for job in self._jobs.live():
            for host in sorted(job.hosts.intersection(hosts)):
                found.setdefault(host, []).append(job.id)
        return found

    def protocols_on(self, hosts: Collection[str]) -> dict[str, set[TrafficProtocol]]:
        """Returns, by host, the protocols that its running jobs declare; jobs that declare TCP alone are left out."""
        found: dict[str, set[TrafficProtocol]] = {}
        for job in self._jobs.live():
            if job.spec.claims.go_beyond_tcp:
                protocols = set(protocols_of(job.spec))
                for host in job.hosts.intersection(hosts):
                    found.setdefault(host, set()).update(protocols)
        return found

    def shared_pairs(self, job_id: str) -> dict[PairKey, int]:
        """Returns what other jobs claim as well as a running job, and how many others do."""
        job = self._jobs.get(job_id)
        return {} if job is None or job.ended_at is not None else self._jobs.owners.shared(job_id, job.spec.claims)

    # Stages ------------------------------------------------------------------------------------------------------

    def stages(self) -> dict[str, tuple[str, ...]]:
        """Returns the stages that were put, or that running jobs name, with their running jobs in order."""
        members: dict[str, list[str]] = {stage: [] for stage in self._stages.names}
        for job in self._jobs.live():
            if job.stage is not None:
                members.setdefault(job.stage, []).append(job.id)
        return {stage: tuple(sorted(jobs)) for stage, jobs in sorted(members.items())}

    def stage_jobs(self, stage_id: str) -> tuple[str, ...]:
        """Returns the jobs of a stage; raises NotFound. See ``Stages.jobs_of``."""
        return self._stages.jobs_of(stage_id)

    def stage_fillers(self, stage_id: str | None, but: str) -> frozenset[str | None]:
        """Returns who has put running jobs into a stage; see ``Stages.fillers``."""
        return self._stages.fillers(stage_id, but)

    @property
    def put_stages(self) -> frozenset[str]:
        """The stages that were put by themselves, and so are an operator's."""
        return frozenset(self._stages.names)

    # Families ----------------------------------------------------------------------------------------------------

    def families_in_steps(self) -> Steps[list[tuple[FamilyKey, FamilyHistory]]]:
        """Returns all families with what they say; yields where others may go on."""
        return self._jobs.families.views()

    def families(self, name: str, user: str | None = None) -> list[tuple[FamilyKey, FamilyHistory]]:
        """Returns the families of this name, of all owners or of one user; raises NotFound."""
        return self._jobs.families.views_of(name, user)

    # Hosts and their agents --------------------------------------------------------------------------------------

    def host_alive(self, host: str) -> bool:
        """Returns whether the host's lease runs."""
        return self._leases.is_alive(host)

    def agent(self, host: str) -> AgentWord:
        """Returns whether the agent of a host reports, is silent, or was never heard of."""
        return self._leases.agent(host)

    def agents(self) -> Iterator[AgentWord]:
        """Yields of each host whether its agent reports, is silent, or was never heard of."""
        return map(self._leases.agent, list(self.servers))

    def clock_offset(self, host: str) -> float | None:
        """Returns what to add to a host's times to get the controller's, in seconds; None before it has reported."""
        return self._leases.clock_offset(host)

    def interfaces(self, host: str) -> tuple[InterfacePart, ...]:
        """Returns what a host's agent says of its interfaces; see ``Leases.interfaces``."""
        return self._leases.interfaces(host)

    def marks(self, host: str) -> bool | None:
        """Returns whether a host marks packets of jobs; see ``Leases.marks``."""
        return self._leases.marks(host)

    def acknowledging(self) -> frozenset[str]:
        """Returns the hosts that mark acknowledgements and whose leases run."""
        return self._leases.acknowledging()

    def tunnels(self) -> dict[str, tuple[int, ...]]:
        """Returns the hosts that mark the outer headers of tunnels; see ``Leases.tunnels``."""
        return self._leases.tunnels()

    # All of it ---------------------------------------------------------------------------------------------------

    def snapshot_in_steps(
        self, now: float, *, classes: int, period: float, switches: Iterable[Switch] = ()
    ) -> Steps[Snapshot]:
        """Returns what a plan needs: the jobs that run and are not lost, by arrival, hosts, stages and switches.

        The traffic of its jobs is between interfaces. Yields where others may go on. A change meanwhile may be in it or
        not.
        """
        jobs = sorted(
            (job for job in self._jobs.live() if job.lost_since is None), key=lambda job: (job.arrival, job.id)
        )
        stages: dict[str, list[str]] = {stage: [] for stage in self._stages.names}
        values = []
        hosts, on_interfaces = self.hosts, self._on_interfaces
        for job in jobs:
            job.set_family(self._jobs.families.history(job))
            values.append(on_interfaces.of(job.value()))
            if job.stage is not None:
                stages.setdefault(job.stage, []).append(job.id)
            yield
        return Snapshot(
            now=now,
            hosts=hosts,
            jobs=tuple(values),
            classes=classes,
            stages=tuple(Stage(stage, tuple(members)) for stage, members in sorted(stages.items())),
            switches=tuple(switches),
            period=period,
            acknowledging=on_interfaces.names(self.acknowledging()),
            tunnels={
                name: ports for server, ports in self.tunnels().items() for name in on_interfaces.names((server,))
            },
        )
