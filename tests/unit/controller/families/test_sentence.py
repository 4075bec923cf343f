"""What a family says, in one sentence, as explain shows it."""

from __future__ import annotations

import pytest

from controller.families.build import history_of
from controller.families.history import FamilyHistory
from controller.families.names import Owner, family_in_force
from controller.families.run import Ending
from controller.families.sentence import sentence
from controller.model import Metric
from tests.support.controller.registry.family_runs import earlier

THREE = [
    earlier("a", 1.0, converged=0.941, t90=14.0),
    earlier("b", 2.0, converged=0.946, t90=17.0),
    earlier("c", 3.0, converged=0.944, t90=20.0),
]


def said(*runs):
    return sentence(history_of("resnet50/cifar10", runs, Metric()))


def test_runs_that_are_alike():
    assert said(*THREE) == "3 earlier runs of resnet50/cifar10: 0.941 to 0.946, 90 % at 14 to 20 % of the run"


def test_runs_that_do_not_count_are_counted_apart():
    aborted = earlier("d", 4.0, ending=Ending.ABORTED, reason="it stopped")
    loss = earlier("e", 5.0, metric="loss", direction="min")
    assert said(*THREE, aborted, loss).endswith("of the run; not counted: 1 aborted, 1 of another metric")


def test_one_run_is_ignored():
    assert said(THREE[0]) == (
        "1 earlier run of resnet50/cifar10: 0.941, 90 % at 14 % of the run; ignored: one run does not show how much "
        "they differ"
    )


def test_no_run_and_none_that_counts():
    assert sentence(FamilyHistory("bert")) == "no earlier run of bert is known"
    refused = earlier("d", 4.0, ending=Ending.REFUSED, reason="it ends below its best")
    assert said(refused) == (
        "1 earlier run of resnet50/cifar10; not counted: 1 refused; ignored: no run of it has finished with a curve "
        "that says something"
    )


@pytest.mark.parametrize(
    ("family", "model", "name"),
    [
        ("mine", "resnet50", "mine"),
        (None, "resnet50", "resnet50"),
        (None, None, None),
        ("", "resnet50", None),
        ("..", None, None),
        (None, "", None),
        ("job-7", None, "job-7"),
    ],
)
def test_the_declared_name_wins_and_an_empty_one_is_none(family, model, name):
    assert family_in_force(family, model) == name


def test_the_owner_is_the_user_else_the_host_of_the_token():
    assert Owner.of("ann", "h1") == Owner("ann", None)
    assert Owner.of(None, "h1") == Owner(None, "h1")
    assert Owner.of(None, None) == Owner()
