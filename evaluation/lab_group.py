"""A group of arms that the lab runs: one request on one network, and the lab's own result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from evaluation.claim import Setting
from topologies.lab.lab import RESULT, run_lab
from topologies.lab.results import LabRequest, LabResult, load_result


class LabGroup(ABC):
    """What ``evaluation.claim.Group`` asks for, but for ``name`` and ``seed``."""

    __slots__ = ()

    @abstractmethod
    def request(self) -> LabRequest:
        """What the lab is asked."""

    @property
    def arms(self) -> int:
        """One for each experiment under each policy."""
        request = self.request()
        return len(request.experiments) * len(request.policies)

    def asked(self) -> LabRequest:
        """See ``request``."""
        return self.request()

    def run(self, setting: Setting) -> LabResult:
        """Run the lab. Raises one of its EXPECTED_ERRORS."""
        return run_lab(self.request(), setting.wanted, results_dir=setting.folder, stop=setting.stop)

    def read(self, folder: Path) -> LabResult:
        """The lab's result. Raises OSError, ValueError."""
        return load_result(folder / RESULT)
