"""All runs of a request, by load, policy and seed: what tables, plots, pages and the JSON document are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.reports.document import document
from simulator.reports.measures import Measures


@dataclass(frozen=True, slots=True)
class Results:
    """``runs[load][policy]`` has a run a seed, in the order of ``seeds``. A trace has the load None.

    ``title`` names what was simulated and ``command`` is what a person would type to do it again.
    """

    title: str
    command: str
    seeds: tuple[int, ...]
    seeded: bool
    baseline: str
    detail: bool
    runs: Mapping[float | None, Mapping[str, Sequence[Measures]]]

    def document(self) -> dict[str, Any]:
        """The JSON document; with several loads one for each under ``loads``."""
        by_load = {
            load: document(runs, seeds=self.seeds, baseline=self.baseline, detail=self.detail)
            for load, runs in self.runs.items()
        }
        if len(by_load) == 1:
            return next(iter(by_load.values()))
        return {"loads": {f"{load!r}": by_policy for load, by_policy in by_load.items()}}
