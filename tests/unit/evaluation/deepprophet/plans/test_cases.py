"""The plans that are measured: each is a mapping that the command takes, and each model has it that can."""

from __future__ import annotations

import json
from collections import Counter

from deepprophet.predict.mapping import MappingSpec
from evaluation.deepprophet.plans import cases


def test_each_plan_is_trained_by_each_model_that_can() -> None:
    everything = cases.cases()
    counts = Counter(case.plan for case in everything)
    assert set(counts) == set(cases.PLANS)
    assert counts.pop("tensor") == 2
    assert set(counts.values()) == {3}
    assert len({case.name for case in everything}) == len(everything)
    assert all(case.ranks <= 2 for case in everything)
    assert all((case.rate_bps is None) == (case.ranks == 1) for case in everything)


def test_plans_are_what_their_names_say() -> None:
    specs = {case.plan: MappingSpec.model_validate_json(json.dumps(case.mapping)) for case in cases.cases()}
    assert {plan for plan, spec in specs.items() if spec.accumulate > 1} == {"accumulate", "accumulate-ddp"}
    assert {plan for plan, spec in specs.items() if spec.checkpoint} == {"checkpoint"}
    kept = {plan: spec.fsdp.reshard_after_forward for plan, spec in specs.items() if spec.fsdp is not None}
    assert kept == {"fsdp": True, "fsdp-keep": False}
    schedules = {plan: spec.pipeline.schedule for plan, spec in specs.items() if spec.pipeline is not None}
    assert schedules == {"pipeline-gpipe": "gpipe", "pipeline-1f1b": "1f1b"}
    assert {plan for plan, spec in specs.items() if spec.tensor is not None} == {"tensor"}
    for case in cases.cases():
        assert specs[case.plan].copies(case.ranks) * specs[case.plan].ranks_of_a_copy == case.ranks


def test_a_quick_run_takes_one_or_two() -> None:
    quick = cases.cases(quick=True)
    assert 1 <= len(quick) <= 2
    assert all(case in cases.cases() for case in quick)
