"""The families of the registry: jobs' runs are kept in them at their end, and noted in the journal."""

from __future__ import annotations

from controller.families.families import Families
from controller.families.history import FamilyHistory
from controller.families.names import FamilyKey
from controller.families.run import EarlierRun
from controller.families.summary import summary
from controller.journal.store import Store
from controller.model import Metric
from controller.pieces import Steps
from controller.refusals import NotFound
from controller.registry import records
from controller.registry.job.record import JobRecord


class KeptFamilies:
    """Families over the journal. Each change is noted with what caused it, so that both are in one commit."""

    def __init__(self, families: Families, store: Store) -> None:
        self._families = families
        self._store = store

    def keep(self, job: JobRecord, ended_at: float) -> None:
        """Keep the run of a job that has ended; again, where more of it has become known since."""
        family = job.family
        if family is None:
            return
        run = summary(
            (job.id, job.registered_at),
            job.history.points(),
            job.spec.metric,
            ended_at=ended_at,
            declared=job.spec.iterations,
            is_lost=job.is_given_up,
            has_diverged=job.diverged,
        )
        self.keep_run(family, run)

    def keep_run(self, family: FamilyKey, run: EarlierRun) -> None:
        """Keep a run of a family, in the place of what is kept of the same one."""
        for gone in self._families.add(family, run):
            records.remove_run(self._store, gone)
        # A run may be older than all that are kept.
        if run in self._families.runs(family):
            records.save_run(self._store, family, run)

    def history(self, job: JobRecord) -> FamilyHistory | None:
        """Returns what the family of a job says now; None: it has no family."""
        return None if job.family is None else self._families.history(job.family, job.spec.metric)

    def remove(self, name: str, user: str | None) -> None:
        """Forget the families of this name, of all owners, or of one user; raises NotFound."""
        for key in self._find(name, user):
            for run in self._families.remove(key):
                records.remove_run(self._store, run)

    def views(self) -> Steps[list[tuple[FamilyKey, FamilyHistory]]]:
        """Returns all families with what they say; yields where others may go on."""
        views = []
        for key in self._families:
            views.append((key, self._view(key)))
            yield
        return views

    def views_of(self, name: str, user: str | None) -> list[tuple[FamilyKey, FamilyHistory]]:
        """Returns the families of this name, of all owners, or of one user; raises NotFound."""
        return [(key, self._view(key)) for key in self._find(name, user)]

    def _find(self, name: str, user: str | None) -> list[FamilyKey]:
        found = [key for key in self._families if key.name == name and user in (None, key.owner.user)]
        if not found:
            of_user = "" if user is None else f" of user {user}"
            raise NotFound(f"there is no family {name}{of_user}: no job of it has ended")
        return found

    def _view(self, key: FamilyKey) -> FamilyHistory:
        """Returns what a family says of a next run with the metric of its latest run that counts."""
        runs = self._families.runs(key)
        return self._families.history(key, _metric(next((run for run in reversed(runs) if run.counts), runs[-1])))


def _metric(run: EarlierRun) -> Metric:
    return Metric(run.metric, run.direction)
