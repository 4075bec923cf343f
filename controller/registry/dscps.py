"""Gives each run of a job a DSCP of its own, as long as there is a free one, and takes it back at the run's end.

A NIC with RDMA takes the DSCP of a connection when the connection is made. So a job keeps its DSCP for its life, also
when it shares one and another becomes free, and over restarts and changes of the settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence

from controller.code_points import CodePoints
from controller.journal.bodies import DscpBody
from controller.journal.store import Batch, Store, put
from controller.registry.job.record import JobRecord

REST_SECONDS = 60.0
"""Processes of a job may send for so long after its end. A DSCP that was free for longer is given first."""
KIND = "dscp"
"""The kind of the records of DSCPs that were given back."""


def next_dscp(pool: Sequence[int], used: Collection[int], freed: Mapping[int, float], now: float) -> int | None:
    """Returns the DSCP that a job gets which begins now; None where ``pool`` is empty.

    ``used`` are those of all jobs that run, and ``freed`` says when others were given back. One that rests from the job
    before goes behind those that have rested, and the last one of the pool behind the others, because further jobs
    would share it; of the rest the one that was given back longest ago is first. A job shares the last one for its life
    only if none is free at all.
    """
    if not pool:
        return None

    def key(dscp: int) -> tuple[bool, bool, float]:
        freed_at = freed.get(dscp, float("-inf"))
        return now - freed_at < REST_SECONDS, dscp == pool[-1], freed_at

    return min((dscp for dscp in pool if dscp not in used), key=key, default=pool[-1])


class Dscps:
    """The DSCPs of jobs, where ``points`` say that jobs have their own.

    ``runs`` returns all jobs that may run, also those that wait for their hosts. ``freed`` says when DSCPs were given
    back that no job has now. It is changed here, and in the journal.
    """

    def __init__(
        self,
        points: CodePoints | None,
        freed: MutableMapping[int, float],
        runs: Callable[[], Iterable[JobRecord]],
        *,
        store: Store,
        clock: Callable[[], float],
    ) -> None:
        self.points = points
        self._freed = freed
        self._runs = runs
        self._store = store
        self._clock = clock

    @property
    def acknowledgements(self) -> int | None:
        """The DSCP of packets without data, of a job that has one of its own; None: there is none."""
        return self.points.acknowledgements if self.points is not None else None

    def begin(self, job: JobRecord) -> None:
        """Give a DSCP to a run that begins."""
        used = {each.dscp for each in self._users(but=job) if each.dscp is not None}
        dscp = next_dscp(self._pool, used, self._freed, self._clock())
        job.set_dscp(dscp)
        if dscp is not None:
            self._take(dscp)

    def end(self, job: JobRecord) -> None:
        """Take back the DSCP of a run that ends, unless another job shares it."""
        if job.dscp is not None and not any(each.dscp == job.dscp for each in self._users(but=job)):
            self._freed[job.dscp] = now = self._clock()
            self._store.put(KIND, str(job.dscp), _text(job.dscp, now))

    def go_on(self, job: JobRecord) -> None:
        """Let a run that had ended have its DSCP again, or another one where a job has got that meanwhile."""
        if job.dscp is None or any(each.dscp == job.dscp for each in self._users(but=job)):
            self.begin(job)
        else:
            self._take(job.dscp)

    def settle(self) -> Iterator[JobRecord]:
        """Give DSCPs to jobs that began when jobs had those of classes; yields these.

        Where jobs have those of classes now, they lose their own.
        """
        running = (job for job in self._runs() if job.ended_at is None)
        for job in sorted(running, key=lambda job: (job.registered_at, job.id)):
            if not self._pool:
                job.set_dscp(None)
            elif job.dscp is None:
                self.begin(job)
                yield job

    def users(self) -> Counter[int | None]:
        """Returns how many jobs that have not ended have each DSCP; none where jobs have those of classes."""
        return Counter(job.dscp for job in self._users()) if self._pool else Counter()

    @property
    def _pool(self) -> Sequence[int]:
        """The DSCPs that jobs get which begin now; none where jobs have those of classes."""
        return (self.points.jobs if self.points is not None else None) or ()

    def _users(self, *, but: JobRecord | None = None) -> Iterator[JobRecord]:
        return (job for job in self._runs() if job.ended_at is None and job.dscp is not None and job is not but)

    def _take(self, dscp: int) -> None:
        if self._freed.pop(dscp, None) is not None:
            self._store.remove(KIND, str(dscp))


def dump_freed(freed: Mapping[int, float], batch: Batch) -> None:
    """Add to a batch when DSCPs were given back."""
    for dscp, freed_at in freed.items():
        put(batch, KIND, str(dscp), _text(dscp, freed_at))


def _text(dscp: int, freed_at: float) -> str:
    return DscpBody(dscp=dscp, freed_at=freed_at).model_dump_json()
