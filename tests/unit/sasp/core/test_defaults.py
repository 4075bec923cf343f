"""What is done about late gradients where a script does not say it."""

from __future__ import annotations

import pytest

from sasp.__main__ import parser
from sasp.core import defaults
from sasp.core.staleness import Prediction


def test_few_layers_are_late_and_compute_ahead() -> None:
    assert defaults.ways(None, None, late=True, others=False) == (True, "local")
    assert defaults.SCHEME.lead == defaults.STALENESS == 1


@pytest.mark.parametrize(("late", "others"), [(False, False), (True, True), (False, True)])
def test_where_nothing_is_late_or_gradients_are_corrected_both_are_off(late: bool, others: bool) -> None:
    assert defaults.ways(None, None, late=late, others=others) == (False, "none")


@pytest.mark.parametrize(
    ("partial", "prediction", "expected"),
    [(False, None, (False, "local")), (None, "momentum", (True, "momentum")), (False, "none", (False, "none"))],
)
def test_what_is_given_counts(
    partial: bool | None, prediction: Prediction | None, expected: tuple[bool, Prediction]
) -> None:
    assert defaults.ways(partial, prediction, late=True, others=False) == expected


def test_a_server_has_the_scheme_that_its_workers_have() -> None:
    assert parser().parse_args(["--workers", "1"]).scheme == defaults.SCHEME
