"""A group of the claim for each plan and model, measured before the calibration and again after it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from evaluation.claim import Setting
from evaluation.deepprophet import arms
from evaluation.deepprophet.plans import cases, measuring
from evaluation.deepprophet.plans.cases import PlanCase
from evaluation.deepprophet.plans.measuring import PlanResult
from topologies.lab.results import save


@dataclass(frozen=True, slots=True)
class PlanGroup:
    """A case that is measured for the first time (``is_first``), or predicted and measured again."""

    case: PlanCase
    quick: bool = False
    is_first: bool = False
    seed: int = 0

    @property
    def name(self) -> str:
        """Returns the name of the group's folder."""
        return f"{self.case.name}-before" if self.is_first else self.case.name

    @property
    def arms(self) -> int:
        """Returns the number of measurements, plus one for the prediction."""
        return 1 if self.is_first else 2

    def asked(self) -> dict[str, Any]:
        """Returns the request; a saved result must have the same."""
        return {**asdict(self.case), "quick": self.quick, "is_first": self.is_first}

    def run(self, setting: Setting) -> PlanResult:
        """Measures and predicts. Raises LabError, CalledProcessError, OSError."""
        if self.is_first:
            result = measuring.measure_first(self.case, quick=self.quick, stop=setting.stop)
        else:
            calibration = setting.folder.parent / arms.CALIBRATION / arms.CALIBRATION_FILE
            result = measuring.measure(self.case, calibration, quick=self.quick, stop=setting.stop)
        save(setting.folder / arms.RESULT, result)
        return result

    def read(self, folder: Path) -> PlanResult:
        """Returns the result that ``run`` has saved in ``folder``. Raises OSError, ValueError."""
        return TypeAdapter(PlanResult).validate_json((folder / arms.RESULT).read_bytes())


def groups(*, quick: bool = False) -> tuple[list[PlanGroup], list[PlanGroup]]:
    """Returns the groups before the calibration, and those after it."""
    again = [PlanGroup(case, quick) for case in cases.cases(quick=quick)]
    return [replace(group, is_first=True) for group in again], again
