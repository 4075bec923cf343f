"""What recorded runs correct in a fit: the constants are what the script learns, and help with other runs."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from scipy.special import expit

from controller import curves
from simulator.workloads import curves as recorded
from tests.calibrate_curves import PERCENT, learn, moments, replayed

NAMES = recorded.names("study")


def test_the_constants_are_what_the_recorded_runs_teach() -> None:
    runs = list(replayed(NAMES))
    for asked in (curves.T90, curves.T95):
        assert asked.calibration is not None
        for learned, used in zip(astuple(learn(moments(runs, asked))), astuple(asked.calibration), strict=True):
            assert learned == pytest.approx(used, abs=2e-3)


def test_what_half_of_the_curves_teach_helps_with_the_other_half() -> None:
    known = [moments(list(replayed(names)), curves.T90) for names in (NAMES[::2], NAMES[1::2])]
    passed_before, passed_after, left_before, left_after = np.zeros((4, 2))
    for half, (teaching, asked) in enumerate((known, known[::-1])):
        learned, ahead = learn(teaching), ~asked.passed
        chance = expit(asked.numbers @ np.array(learned.passed))
        left = PERCENT * np.exp(asked.numbers @ np.array(learned.left))
        fitted = PERCENT * np.exp(asked.numbers[:, 2] + asked.numbers[:, 3])

        def squares(chance: np.ndarray, asked=asked) -> float:
            return float(np.average((chance - asked.passed) ** 2, weights=asked.weight))

        def away(left: np.ndarray, asked=asked, ahead=ahead) -> float:
            return float(np.average(np.abs(left - asked.left)[ahead], weights=asked.weight[ahead]))

        passed_before[half], passed_after[half] = squares(expit(asked.numbers[:, 1])), squares(chance)
        left_before[half], left_after[half] = away(fitted), away(left)
    assert (passed_after < 0.95 * passed_before).all(), (passed_before, passed_after)
    assert (left_after < 0.7 * left_before).all(), (left_before, left_after)
