"""The JSON document of ``trainyard sim --json``: what the design says, and under ``measures`` all else. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from simulator.reports.measures import Measures
from simulator.reports.summary import Summary, summarise, versus

Runs = Mapping[str, Sequence[Measures]]
"""The runs of each policy, one a seed, in the same order of seeds."""


def document(runs: Runs, *, seeds: Sequence[int], baseline: str, detail: bool) -> dict[str, Any]:
    """One load's document. ``detail`` adds ``measures``, ``versus_baseline`` and, with several seeds, ``seeds``.

    A mean is the mean over seeds of each seed's, percentiles are over the coflows (jobs, stages) of all seeds;
    ``makespan_seconds`` is the mean over seeds, ``wall_seconds`` and ``cpu_seconds`` are sums. With several seeds the
    keys of ``per_coflow`` are SEED/ID.
    """
    content: dict[str, Any] = {
        "policies": {policy: _policy(policy_runs) for policy, policy_runs in runs.items()},
        "per_coflow": {policy: _per_coflow(policy_runs, seeds) for policy, policy_runs in runs.items()},
    }
    if detail:
        content["seeds"] = list(seeds)
        content["baseline"] = baseline
        for policy, policy_runs in runs.items():
            content["policies"][policy] |= {
                "plans": sum(run.plans for run in policy_runs),
                "iterations": sum(run.iterations for run in policy_runs),
                "measures": {name: _measure(summary) for name, summary in summarise(policy_runs).items()},
                "versus_baseline": {name: _plain(asdict(v)) for name, v in versus(runs[baseline], policy_runs).items()},
            }
    return content


def dumps(content: Mapping[str, Any]) -> str:
    """A document as text, with its last line ended. There is no NaN in one."""
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _policy(runs: Sequence[Measures]) -> dict[str, Any]:
    summaries = summarise(runs)
    cct = summaries.get("cct_seconds")
    return {
        "coflows": cct.count if cct else 0,
        "mean_cct_seconds": cct.mean if cct else None,
        "p50_cct_seconds": cct.p50 if cct else None,
        "p95_cct_seconds": cct.p95 if cct else None,
        "p99_cct_seconds": cct.p99 if cct else None,
        "makespan_seconds": float(np.mean([run.makespan_seconds for run in runs])),
        "wall_seconds": sum(run.wall_seconds for run in runs),
        "cpu_seconds": sum(run.cpu_seconds for run in runs),
        "mean_sct_seconds": _mean(summaries.get("sct_seconds")),
        "mean_t90_seconds": _mean(summaries.get("t90_seconds")),
        "mean_jct_seconds": _mean(summaries.get("jct_seconds")),
    }


def _mean(summary: Summary | None) -> float | None:
    return None if summary is None else summary.mean


def _per_coflow(runs: Sequence[Measures], seeds: Sequence[int]) -> dict[str, float]:
    if len(runs) == 1:
        return dict(runs[0].cct)
    return {f"{seed}/{job}": cct for seed, run in zip(seeds, runs, strict=True) for job, cct in run.cct.items()}


def _measure(summary: Summary) -> dict[str, Any]:
    return {
        "count": summary.count,
        "censored": summary.censored,
        "mean": summary.mean,
        "mean_ci95": None if summary.interval is None else list(summary.interval),
        "p50": summary.p50,
        "p95": summary.p95,
        "p99": summary.p99,
    }


def _plain(comparison: dict[str, Any]) -> dict[str, Any]:
    bounds = comparison["interval"]
    finite = math.isfinite(comparison["reduction"])
    return {
        "reduction": comparison["reduction"] if finite else None,
        "ci95": None if bounds is None else list(bounds),
        "ci95_over": comparison["over"],
    }
