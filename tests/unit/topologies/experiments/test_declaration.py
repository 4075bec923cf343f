"""What arms declare changes what is known of the jobs, and nothing else; old documents stay what they were."""

from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from topologies.experiments.declaration import Declaration, declared
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.experiment import Experiment
from topologies.experiments.workload import LIGHT, generate
from topologies.lab.results import LabRequest, PolicyChoice

PLAIN = generate(LIGHT, 1)
FIRST, SECOND = PLAIN.jobs[:2]


def test_a_declaration_stands_beside_what_the_experiment_says() -> None:
    own = PLAIN.model_copy(
        update={"jobs": (FIRST.model_copy(update={"target": 0.5, "family": "own"}), *PLAIN.jobs[1:])}
    )
    changed = declared(
        own, {FIRST.id: Declaration(family="other"), SECOND.id: Declaration(target=0.9), "absent": Declaration()}
    )
    assert [(job.target, job.family) for job in changed.jobs[:3]] == [(0.5, "other"), (0.9, ""), (None, "")]
    undone = [job.model_copy(update={"target": None, "family": ""}) for job in changed.jobs]
    assert tuple(undone) == PLAIN.jobs
    assert declared(own, {FIRST.id: Declaration(), SECOND.id: Declaration()}) == own


def test_requests_of_before_are_equal_to_those_that_say_nothing_new() -> None:
    kind = TypeAdapter(LabRequest)
    request = LabRequest((PLAIN,), (PolicyChoice("fair"),))
    old = json.loads(kind.dump_json(request))
    for key in ("declares", "plugins"):
        old["policies"][0].pop(key)
    old["experiments"][0].pop("earlier")
    for job in old["experiments"][0]["jobs"]:
        job.pop("family")
    assert kind.validate_json(json.dumps(old)) == request


def test_a_request_with_everything_new_comes_back_from_its_document() -> None:
    earlier = (
        EarlierJob(id="e", family="f", iterations=9, curve=(0.5, 0.25)),
        EarlierJob(id="g", family="f", iterations=9, curve=FIRST.curve),
    )
    jobs = (FIRST.model_copy(update={"curve": (0.1, 0.2), "family": "f"}),)
    choice = PolicyChoice("jpas", declares={FIRST.id: Declaration(target=0.9, family="f")}, plugins="here")
    request = LabRequest((PLAIN.model_copy(update={"earlier": earlier, "jobs": jobs}),), (choice,))
    kind = TypeAdapter(LabRequest)
    assert kind.validate_json(kind.dump_json(request)) == request


def test_earlier_jobs_declare_their_family_alone() -> None:
    earlier = EarlierJob(id="e", family="f", iterations=9, curve=(0.5, 0.25))
    experiment = PLAIN.model_copy(update={"earlier": (earlier,)})
    (other,) = declared(experiment, {"e": Declaration(target=0.3, family="g")}).earlier
    assert other == earlier.model_copy(update={"family": "g"})
    assert declared(experiment, {"e": Declaration(target=0.3)}).earlier == (earlier,)


def test_two_jobs_never_have_the_same_id() -> None:
    earlier = EarlierJob(id=FIRST.id, family="f", iterations=9, curve=(0.5, 0.25))
    with pytest.raises(ValidationError, match=f"two jobs are called {FIRST.id}"):
        Experiment.model_validate(PLAIN.model_dump() | {"earlier": [earlier.model_dump()]})
    with pytest.raises(ValidationError, match="earlier: two jobs have the same id"):
        Experiment.model_validate(PLAIN.model_dump() | {"earlier": [earlier.model_dump()] * 2})
