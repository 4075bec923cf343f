"""The jobs of the demo, and what JPAS is told of them. Fixed before the demo was measured on them. Pure.

Eight jobs arrive, of families that were trained before: a wave of a stream of retrainings (``evaluation.jpas.stream``)
after twelve waves of eight. All jobs declare their families, and half of them, whom the seed chooses, targets.
"""

from __future__ import annotations

from evaluation.jpas.stream import Wave, count_earlier_runs, declarations, draw_wave
from topologies.experiments.declaration import Declaration
from topologies.experiments.workload import DEMO
from topologies.lab.results import PolicyChoice

BASELINE, SUBJECT = "fair", "jpas"
SEED = 1
PERIOD_SECONDS = 1.0
"""The controller's T."""
WAVES_BEFORE = 12
LIMIT_SECONDS = 105.0
"""Stop the jobs of an arm after this many seconds.

Where both arms reach the limit, the demo still ends within six minutes after set-up: 100 s are left for the box, the
network, the queue proof, the starts of two controllers and their agents, the take-down and the plot.
"""


def demo_wave(*, period_seconds: float, seed: int = SEED) -> Wave:
    """Returns the demo's jobs, or others of another ``seed``. ``period_seconds`` is the controller's T."""
    return draw_wave(
        DEMO,
        seed,
        period_seconds=period_seconds,
        before=WAVES_BEFORE,
        retrained=True,
        limit_seconds=LIMIT_SECONDS,
    )


def choices(jobs: Wave) -> tuple[PolicyChoice, PolicyChoice]:
    """Returns the two arms."""
    return PolicyChoice(BASELINE), PolicyChoice(SUBJECT, declares=declared(jobs))


def declared(jobs: Wave) -> dict[str, Declaration]:
    """Returns what each job declares."""
    targets = declarations(jobs, "half")
    return {
        job.id: Declaration(target=targets[job.id].target if job.id in targets else None, family=jobs.families[job.id])
        for job in jobs.experiment.jobs
    }


def known(jobs: Wave) -> dict[str, str]:
    """Returns what JPAS knows of each job, in words."""
    words = {}
    for job, count in count_earlier_runs(jobs).items():
        target = declared(jobs)[job].target
        runs = "no earlier run" if count == 0 else f"{count} earlier run{'s' if count > 1 else ''}"
        words[job] = runs if target is None else f"{runs}, target {target:.3f}"
    return words
