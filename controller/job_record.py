"""One job as the registry keeps it: its spec, and what was reported of this run of it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from controller.history import History
from controller.host_record import HostRecord
from controller.job_flows import Claims, covers, derived_flows, involved_hosts
from controller.model import Demand, Flow, Job, Metric, Progress, Task
from controller.wire import FlowSpec, JobSpec, JobState

MAX_SEEN_FLOWS = 4096
UNKNOWN_RUN_ITERATIONS = 100.0
"""A run of unknown length is taken to go on for as many iterations as it has done, and at least for so many."""


class JobRecord:
    """A job. ``ended_at`` is None while it runs; ``run`` counts its registrations after an end."""

    def __init__(self, job_id: str, spec: JobSpec, *, run: int, arrival: float, registered_at: float) -> None:
        self.id = job_id
        self.run = run
        self.arrival = arrival
        self.registered_at = registered_at
        self.ended_at: float | None = None
        self.lost_since: float | None = None
        self.last_report: float | None = None
        self.received_at = 0.0
        self.history = History()
        self.sent: dict[str, float] = {}
        self._seen: OrderedDict[FlowSpec, None] = OrderedDict()
        self._value: Job | None = None
        self.set_spec(spec)

    def set_spec(self, spec: JobSpec) -> None:
        """Take another spec for the same run."""
        self.spec = spec
        self.stage = spec.stage
        self.claims = Claims.of(spec)
        self.hosts = involved_hosts(spec)
        self._derived = derived_flows(self.id, spec)
        self._between: dict[tuple[str, str], list[Flow]] = {}
        for flow in self._derived:
            self._between.setdefault((flow.src, flow.dst), []).append(flow)
        self._demand = tuple(Demand(d.src, d.dst, d.bytes) for d in spec.demand)
        self._tasks = tuple(Task(t.role, t.host, t.port) for t in spec.tasks)
        for seen in [flow for flow in self._seen if self._covers(flow)]:
            del self._seen[seen]
        self._value = None

    def set_stage(self, stage: str | None) -> None:
        """Move the job to a stage."""
        self.stage = stage
        self._value = None

    def forget_history(self) -> None:
        """Drop all progress: the metric means something else now."""
        self.history = History()
        self._value = None

    def merge_point(self, point: Progress) -> bool:
        """Merge a point of progress; whether it is new."""
        changed = self.history.add(point)
        if changed:
            self._value = None
        return changed

    def merge_sent(self, host: str, sent: float) -> bool:
        """Merge a host's count of bytes, which only grows; whether it grew."""
        if sent <= self.sent.get(host, -1.0):
            return False
        self.sent[host] = sent
        self._value = None
        return True

    def merge_flow(self, flow: FlowSpec) -> bool:
        """Note a connection that a host found; whether it adds to what the job's traffic is told apart by."""
        if flow in self._seen:
            self._seen.move_to_end(flow)
            return False
        if self._covers(flow):
            return False
        self._seen[flow] = None
        while len(self._seen) > MAX_SEEN_FLOWS:
            self._seen.popitem(last=False)
        self._value = None
        return True

    def _covers(self, flow: FlowSpec) -> bool:
        return covers(self._between.get((flow.src, flow.dst), ()), flow)

    @property
    def seen(self) -> frozenset[FlowSpec]:
        """The connections that hosts found beside those declared."""
        return frozenset(self._seen)

    @property
    def iterations_left(self) -> float:
        """Iterations to go; see UNKNOWN_RUN_ITERATIONS where the length of the run is not known."""
        done = self.history.iterations_done
        if self.spec.iterations is None:
            return max(done, UNKNOWN_RUN_ITERATIONS)
        return max(self.spec.iterations - done, 0.0)

    def is_lost(self, hosts: dict[str, HostRecord], now: float, lease: float) -> bool:
        """Whether every host of the job that ever reported has been silent for longer than its lease."""
        agents = [hosts[name] for name in self.hosts if name in hosts and hosts[name].last_seen is not None]
        return bool(agents) and not any(agent.alive(now, lease) for agent in agents)

    def value(self) -> Job:
        """The job as the policies see it."""
        if self._value is None:
            seen = {Flow(self.id, f.src, f.dst, f.src_port, f.dst_port) for f in self._seen}
            self._value = Job(
                id=self.id,
                demand=self._demand,
                arrival=self.arrival,
                weight=self.spec.weight,
                stage=self.stage,
                iterations_left=self.iterations_left,
                iterations_total=self.spec.iterations,
                compute_seconds=self.spec.compute_seconds,
                progress=self.history.points(),
                metric=Metric(self.spec.metric.name, self.spec.metric.direction),
                tasks=self._tasks,
                flows=tuple(sorted(self._derived | seen, key=_flow_key)),
                sent_bytes=dict(sorted(self.sent.items())),
            )
        return self._value

    def state(self, service_class: int | None) -> JobState:
        """The job as the API shows it."""
        measured = self.history.last_measured
        return JobState(
            id=self.id,
            spec=self.spec,
            arrival=self.arrival,
            state=self._state_word(),
            iterations_done=self.history.iterations_done,
            last_metric=measured.metric if measured else None,
            last_report=self.last_report,
            service_class=service_class,
        )

    def _state_word(self) -> Any:
        if self.ended_at is not None:
            return "ended"
        if self.lost_since is not None:
            return "lost"
        return "waiting" if self.last_report is None else "running"

    def to_record(self) -> dict[str, Any]:
        """What changes seldom, for the journal."""
        return {
            "spec": self.spec.model_dump(mode="json"),
            "run": self.run,
            "arrival": self.arrival,
            "registered_at": self.registered_at,
            "ended_at": self.ended_at,
            "stage": self.stage,
        }

    def to_tally(self) -> dict[str, Any]:
        """What every report changes, beside the points, for the journal."""
        return {
            "sent": self.sent,
            "last_report": self.last_report,
            "seen": [flow.model_dump(mode="json") for flow in self._seen],
        }

    @classmethod
    def from_record(cls, job_id: str, record: dict[str, Any]) -> JobRecord:
        """The job of a record, without its tally and points."""
        job = cls(
            job_id,
            JobSpec.model_validate(record["spec"]),
            run=record["run"],
            arrival=record["arrival"],
            registered_at=record["registered_at"],
        )
        job.ended_at = record["ended_at"]
        job.stage = record["stage"]
        return job

    def add_tally(self, tally: dict[str, Any]) -> None:
        """Merge a tally from the journal."""
        self.last_report = tally["last_report"]
        for host, sent in tally["sent"].items():
            self.merge_sent(host, sent)
        for flow in tally["seen"]:
            self.merge_flow(FlowSpec.model_validate(flow))


def _flow_key(flow: Flow) -> tuple[str, str, int, int]:
    return (flow.src, flow.dst, flow.src_port or 0, flow.dst_port or 0)
