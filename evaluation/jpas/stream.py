"""The jobs of the claim with families: a stream of retrainings, of which one wave is measured. Pure.

A cluster retrains some families often and most seldom: each job draws a family of the recorded ones that judge
(``evaluation.curves.families``, ``claim``) by Zipf's law (exponent 1; the ranks are the seed's), and then one of its
runs that no job of the stream had before. The stream begins cold. It comes in waves of as many jobs as the load has.
All jobs of a wave have ended before the next one begins, so the earlier runs that a job may know are those of the waves
before its own, and of its own wave as they end. A seed measures one wave, by the seed modulo 4 the first, the fourth,
the seventh or the tenth (``BEFORE``): seeds in a row measure the cold wave as often as the last. Of the waves before,
only what the controller keeps of their runs counts, so their jobs do not train again.

All arms have the same jobs. They differ in what the jobs declare (``declarations``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, NamedTuple

from controller.curves.fit import T90
from evaluation.curves.families.runs import KEPT, load
from simulator.families import finished_run
from simulator.reports.targets import target_value
from topologies.experiments.declaration import Declaration
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.experiment import Experiment
from topologies.experiments.workload import ALONE_SECONDS, Load, draw_recorded, generate, iterations_of

Knows = Literal["none", "everything", "family", "target", "half", "both", "wrong-family"]
"""What the policy knows of the jobs, see ``declarations``."""
BEFORE = (0, 3, 6, 9)
"""So many waves come before the one that a seed measures."""
FRACTION = T90.fraction
HALF, WRONG_SHARE = 0.5, 0.25
Rows = tuple[float, ...]
"""The accuracy on the held-out samples, row by row."""


class Drawn(NamedTuple):
    """A job of the stream: its family, another one that is declared for it by mistake, and the rows of its curve."""

    family: str
    wrong_family: str
    rows: Rows


@dataclass(frozen=True, slots=True)
class Wave:
    """The measured wave of a stream: its experiment, in which no job declares anything, and what jobs may declare.

    ``families`` and ``wrong_families`` give the family and a wrong one of each job, also of those in the waves before.
    ``targets`` gives the metric at 90 % of each measured job's own gap.
    """

    experiment: Experiment
    families: Mapping[str, str]
    wrong_families: Mapping[str, str]
    targets: Mapping[str, float]


def draw_wave(
    load: Load,
    seed: int,
    *,
    period_seconds: float,
    before: int | None = None,
    retrained: bool = False,
    limit_seconds: float = 600.0,
) -> Wave:
    """Returns the wave that a seed measures.

    ``before``: so many waves come before it; None: as many as the seed says. ``retrained``: jobs whose family has no
    run in the waves before are left out.
    """
    drawn = _stream(seed)
    random = Random(f"trainyard earlier jobs {seed}")  # noqa: S311 - a seed must repeat the experiment
    earlier = []
    known: dict[str, Drawn] = {}
    for number in range(load.jobs * (BEFORE[seed % len(BEFORE)] if before is None else before)):
        job = next(drawn)
        iterations = iterations_of(len(job.rows), random.uniform(*ALONE_SECONDS))
        name = f"earlier{number + 1:03d}"
        known[name] = job
        earlier.append(EarlierJob(id=name, family=job.family, iterations=iterations, curve=job.rows))
    seen = {job.family for job in known.values()}
    if retrained:
        drawn = (job for job in drawn if job.family in seen)
    now: list[Drawn] = []

    def draw(random: Random) -> tuple[Rows, int]:
        # One number is drawn as in the old workload, so the jobs differ from its jobs in nothing but their curves.
        draw_recorded(random)
        now.append(next(drawn))
        return now[-1].rows, len(now[-1].rows)

    plain = generate(load, seed, draw=draw, period_seconds=period_seconds, limit_seconds=limit_seconds)
    experiment = plain.model_copy(update={"name": f"families-{plain.name}", "earlier": tuple(earlier)})
    known |= {job.id: of_stream for job, of_stream in zip(experiment.jobs, now, strict=True)}
    return Wave(
        experiment=experiment,
        families={name: job.family for name, job in known.items()},
        wrong_families={name: job.wrong_family for name, job in known.items()},
        targets={job.id: target_value(job.metrics, FRACTION) for job in experiment.jobs},
    )


def declarations(wave: Wave, knows: Knows) -> dict[str, Declaration]:
    """Returns what jobs declare in an arm, by job.

    - ``none``, ``everything``: nothing.
    - ``family``: all jobs their families; ``target``: all jobs their targets; ``both``: all jobs both.
    - ``half``: half of the jobs their targets. The seed chooses them.
    - ``wrong-family``: all jobs a family. For a quarter of the jobs of the stream it is a wrong one, also in the waves
      before. The seed chooses them.
    """
    jobs = [job.id for job in wave.experiment.jobs]
    random = Random(f"trainyard declarations {knows} {wave.experiment.seed}")  # noqa: S311 - to be repeated
    match knows:
        case "none" | "everything":
            return {}
        case "target":
            return {job: Declaration(target=wave.targets[job]) for job in jobs}
        case "half":
            chosen = set(random.sample(jobs, round(HALF * len(jobs))))
            return {job: Declaration(target=wave.targets[job]) for job in jobs if job in chosen}
        case "family":
            return {job: Declaration(family=wave.families[job]) for job in jobs}
        case "both":
            return {job: Declaration(target=wave.targets[job], family=wave.families[job]) for job in jobs}
        case "wrong-family":
            every = list(wave.families)
            chosen = set(random.sample(every, round(WRONG_SHARE * len(every))))
            return {
                job: Declaration(family=wave.wrong_families[job] if job in chosen else family)
                for job, family in wave.families.items()
                if job in chosen or job in jobs
            }


def count_earlier_runs(wave: Wave) -> dict[str, int]:
    """Returns, for each job, how many runs of its family in the waves before count by the controller's criteria."""
    counts: Counter[str] = Counter()
    for job in wave.experiment.earlier:
        counts[job.family] += finished_run((job.id, 0.0), job.metrics, ended_at=0.0).counts
    return {job.id: counts[wave.families[job.id]] for job in wave.experiment.jobs}


def _stream(seed: int) -> Iterator[Drawn]:
    """Yields the jobs of a stream in the order of their arrival. It ends when every run has been drawn."""
    random = Random(f"trainyard stream of families {seed}")  # noqa: S311 - a seed must repeat the stream
    left: dict[str, list[Rows]] = {}
    for name, runs in sorted(load("claim").items()):
        kept = [run.accuracy for run in runs if run.verdict == KEPT]
        random.shuffle(kept)
        left[name] = kept
    ranked = list(left)
    random.shuffle(ranked)
    chances = {name: 1.0 / rank for rank, name in enumerate(ranked, start=1)}
    while any(left.values()):
        open_families = [name for name in ranked if left[name]]
        family = random.choices(open_families, [chances[name] for name in open_families])[0]
        others = [name for name in ranked if name != family]
        wrong = random.choices(others, [chances[name] for name in others])[0]
        yield Drawn(family, wrong, left[family].pop())
