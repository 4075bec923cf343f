"""A group of arms that the lab runs: one request on one network, and the lab's own result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path

from evaluation.claim import Setting
from topologies.lab.lab import RESULT, run_lab
from topologies.lab.results import LabRequest, LabResult, load_result


class LabGroup(ABC):
    """An ``evaluation.claim.Group`` without ``name`` and ``seed``, which a claim's own class adds."""

    __slots__ = ()

    @abstractmethod
    def request(self) -> LabRequest:
        """Return the request to the lab."""

    @property
    def answer(self) -> type[LabResult]:
        """The lab's result."""
        return LabResult

    @property
    def arms(self) -> int:
        """The number of arms: one for each experiment under each policy."""
        request = self.request()
        return len(request.experiments) * len(request.policies)

    def asked(self) -> LabRequest:
        """Return the request, which a kept result must answer."""
        return self.request()

    def run(self, setting: Setting) -> LabResult:
        """Run the lab. Raises one of its EXPECTED_ERRORS."""
        return run_lab(self.request(), setting.wanted, results_dir=setting.folder, stop=setting.stop)

    def read(self, folder: Path) -> LabResult:
        """Read the lab's result. Raises OSError, ValueError."""
        return load_result(folder / RESULT)

    def small(self, result: LabResult) -> LabResult:
        """Returns a result without the jobs' histories, the links' use and TCP's, which most claims do not add up."""
        arms = [
            replace(arm, jobs={job: replace(each, history=()) for job, each in arm.jobs.items()}, links=(), tcp=())
            for arm in result.arms
        ]
        return replace(result, arms=tuple(arms))
