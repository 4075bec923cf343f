"""The registry and the store as the product calls them, with all steps done at once."""

from __future__ import annotations

from collections.abc import Iterable

from controller.declared.batch import Batch
from controller.declared.declared import Declared
from controller.journal import file
from controller.journal.store import Store
from controller.model import Snapshot, Switch
from controller.pieces import whole
from controller.registry.registry import Change, Registry
from controller.wire import HostReport, JobSpec, ReportAnswer, StageSpec


class UnpausedRegistry(Registry):
    """A registry with a call for each change that the API makes in steps."""

    def put_job(
        self, job_id: str, spec: JobSpec | Declared, received_at: float, registrar: str | None = None
    ) -> Change:
        declared = spec if isinstance(spec, Declared) else Declared.of(spec)
        return whole(self.put_job_in_steps(job_id, declared, received_at, registrar))

    def put_stage(self, stage_id: str, spec: StageSpec, received_at: float) -> Change:
        return whole(self.put_stage_in_steps(stage_id, spec, received_at))

    def delete_stage(self, stage_id: str, received_at: float) -> None:
        whole(self.delete_stage_in_steps(stage_id, received_at))

    def report(self, host: str, report: HostReport, received_at: float) -> ReportAnswer:
        return whole(self.report_in_steps(host, Batch.of(report), received_at))

    def expire(self) -> None:
        whole(self.expire_in_steps())

    def snapshot(self, now: float, *, classes: int, period: float, switches: Iterable[Switch] = ()) -> Snapshot:
        return whole(self.snapshot_in_steps(now, classes=classes, period=period, switches=switches))


def dequeued(store: Store) -> file.Batch:
    """Returns what the store noted since the last call; everything, where it is degraded."""
    return whole(store.dequeue_in_steps())


def commit(store: Store) -> None:
    """Writes what the store noted, as the journal's thread does."""
    store.settle(store.write(dequeued(store)))
