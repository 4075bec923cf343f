"""How far off a declared prediction was."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from controller.api.calls.predicted import check
from controller.cli.explain.facts import facts
from controller.declared.declared import Declared, PredictedSeconds
from controller.pieces import whole
from controller.wire import Explanation, JobPace, JobSpec, PredictedIteration

PREDICTED = PredictedSeconds(seconds=1.0, low=0.8, high=1.3)


def test_the_highest_pace_counts() -> None:
    """What others take from the network is not the prediction's fault."""
    found = check(PREDICTED, JobPace(now=0.5, seconds=30.0, best=0.8), "iteration", None)
    assert found is not None
    assert (found.measured, found.off) == (pytest.approx(1.25), pytest.approx(0.25))
    faster = check(PREDICTED, JobPace(now=1.25, seconds=30.0), "iteration", None)
    assert faster is not None and faster.off == pytest.approx(-0.2)


def test_an_epoch_has_many_iterations() -> None:
    found = check(PREDICTED, JobPace(now=0.01, seconds=300.0), "epoch", 80.0)
    assert found is not None and found.measured == pytest.approx(1.25)
    unknown = check(PREDICTED, JobPace(now=0.01, seconds=300.0), "epoch", None)
    assert unknown is not None and (unknown.measured, unknown.off) == (None, None)


def test_what_was_not_measured_is_not_judged() -> None:
    for pace in (None, JobPace(now=0.0, seconds=60.0)):
        found = check(PREDICTED, pace, "iteration", None)
        assert found is not None
        assert (found.seconds, found.measured, found.off) == (1.0, None, None)
    assert check(None, JobPace(now=1.0, seconds=30.0), "iteration", None) is None


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (None, "1 s an iteration (80 %: 800 ms to 1.3 s); it has not been measured yet"),
        (0.8, "1 s an iteration (80 %: 800 ms to 1.3 s); it takes 1.2 s, 25 % longer, within the interval"),
        (2.0, "1 s an iteration (80 %: 800 ms to 1.3 s); it takes 500 ms, 50 % shorter, outside the interval"),
    ],
)
def test_the_command_says_it(now: float | None, said: str) -> None:
    answer = Explanation(
        job="a", policy="fifo", service_class=0, position=0, jobs_before=(), reason="it came first",
        bottleneck_port=None, bottleneck_seconds_per_iteration=0.0, iterations_done=1.0, iterations_left=2.0,
        prediction=check(PREDICTED, None if now is None else JobPace(now=now, seconds=30.0), "iteration", None),
    )  # fmt: skip
    assert dict(facts(answer))["predicted"] == said


def test_a_prediction_is_kept_and_in_order() -> None:
    spec = JobSpec(predicted=PredictedIteration(**PREDICTED._asdict()))
    assert Declared.of(spec).predicted == PREDICTED
    there = whole(Declared.from_frames(iter(list(Declared.of(spec).frames()))))
    assert there.predicted == PREDICTED
    with pytest.raises(ValidationError, match="low, seconds and high must be in this order"):
        PredictedIteration(seconds=1.0, low=1.2, high=1.3)
