"""Each plan is measured before the calibration and after it, and a result is kept for the same request alone."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation import resume
from evaluation.claim import NO_DATAPATH, Setting
from evaluation.deepprophet import arms, claim
from evaluation.deepprophet.plans import cases
from evaluation.deepprophet.plans.groups import PlanGroup, groups
from evaluation.deepprophet.plans.measuring import PlanResult, Predicted
from topologies.errors import LabError
from topologies.lab.results import save

RESULT = PlanResult(2, 0.5, 1e6, Predicted(0.4, 0.3, 0.6, 9e5, 4.0), "digest")


def test_every_plan_is_measured_twice_with_the_calibration_between() -> None:
    everything = claim.groups()
    middle = next(n for n, group in enumerate(everything) if isinstance(group, claim.Group) and group.model is None)
    for part, is_first in ((everything[:middle], True), (everything[middle + 1 :], False)):
        own = [group for group in part if isinstance(group, PlanGroup)]
        assert [group.case for group in own] == cases.cases()
        assert {group.is_first for group in own} == {is_first}
    assert len({group.name for group in everything}) == len(everything)
    quick = [group for group in claim.groups(quick=True) if isinstance(group, PlanGroup)]
    assert [group.case for group in quick] == 2 * cases.cases(quick=True)
    assert all(group.quick for group in quick)


def test_a_result_answers_its_own_request_alone(tmp_path: Path) -> None:
    (first, *_), (group, other, *_) = groups()
    save(tmp_path / arms.RESULT, RESULT)
    resume.mark_whole(tmp_path, group.asked(), "commit")
    found = resume.load(tmp_path, group.asked(), NO_DATAPATH, group.read)
    assert found is not None
    assert found.result == RESULT
    changed = replace(group, case=replace(group.case, mapping={**group.case.mapping, "accumulate": 7}))
    for another in (first, other, replace(group, quick=True), changed):
        assert resume.load(tmp_path, another.asked(), NO_DATAPATH, another.read) is None


def test_a_prediction_needs_the_calibration(tmp_path: Path) -> None:
    _, (group, *_) = groups(quick=True)
    with pytest.raises(LabError, match="the calibration comes first"):
        group.run(Setting(tmp_path / group.name, "auto", None, threading.Event()))
