"""Tuning with a barrier after each rung: successive halving, and Hyperband's brackets of it. A rung is a stage.

[known] K. Jamieson, A. Talwalkar: Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016.
L. Li, K. Jamieson, G. DeSalvo, A. Rostamizadeh, A. Talwalkar: Hyperband, JMLR 18(185), 2018. Of a rung's n trials the
best floor(n / eta) go on for eta times the iterations. Hyperband runs brackets one after the other, from many
configurations that are cut early to few that all run to the end.
"""

from __future__ import annotations

import math

from simulator.jobs import SimJob
from simulator.workloads.study import Config, Study, best


def geometric(smallest: int, largest: int, eta: int) -> tuple[int, ...]:
    """Iterations at the end of each rung: ``largest``, and eta, eta^2, ... times less while not under ``smallest``."""
    rungs = [largest]
    while rungs[0] // eta >= smallest:
        rungs.insert(0, rungs[0] // eta)
    return tuple(rungs)


def halving_configs(rungs: int, eta: int) -> int:
    """Configurations of successive halving that leave one for the last rung."""
    return int(eta ** (rungs - 1))


def brackets(rungs: int, eta: int) -> list[tuple[int, int]]:
    """Hyperband's brackets: configurations and first rung of each, in the order in which they run."""
    last = rungs - 1
    return [(math.ceil(rungs / (s + 1) * eta**s), last - s) for s in range(last, -1, -1)]


def hyperband_configs(rungs: int, eta: int) -> int:
    """Configurations over all brackets."""
    return sum(configs for configs, _ in brackets(rungs, eta))


def halving_jobs(study: Study, arrival: float) -> list[SimJob]:
    """All trials of one study by successive halving: who is promoted does not depend on time."""
    return _bracket(study, study.configs, 0, study.name, arrival=arrival, after=())


def hyperband_jobs(study: Study, arrival: float) -> list[SimJob]:
    """All trials of one study by Hyperband."""
    jobs: list[SimJob] = []
    taken = 0
    after: tuple[str, ...] = ()
    for number, (configs, first) in enumerate(brackets(len(study.rungs), study.eta), start=1):
        members = study.configs[taken : taken + configs]
        taken += configs
        jobs += _bracket(study, members, first, f"{study.name}/bracket{number}", arrival=arrival, after=after)
        last = jobs[-1].stage
        after = tuple(job.id for job in jobs if job.stage == last)
    return jobs


def _bracket(
    study: Study, configs: tuple[Config, ...], first: int, name: str, *, arrival: float, after: tuple[str, ...]
) -> list[SimJob]:
    jobs: list[SimJob] = []
    alive: list[Config] = list(configs)
    start = 0
    counts = _counts(len(configs), study.eta, len(study.rungs) - first)
    for step, count in enumerate(counts):
        alive = best(alive, start, count) if step else alive
        rung = first + step
        stage, left = f"{name}/rung{rung + 1}", len(counts) - 1 - step
        trials = [
            study.trial(c, rung, stage, start=start, arrival=arrival, after=after, rungs_left=left) for c in alive
        ]
        jobs += trials
        after = tuple(trial.id for trial in trials)
        start = study.rungs[rung]
    return jobs


def _counts(configs: int, eta: int, rungs: int) -> list[int]:
    """Trials of each rung of a bracket: at most so many rungs, and none without a trial."""
    return [configs, *(count for step in range(1, rungs) if (count := configs // eta**step) >= 1)]
