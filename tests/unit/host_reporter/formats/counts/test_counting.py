"""From readings to points: epochs and steps, the metric, two lines, new runs."""

from __future__ import annotations

import math

import pytest

from host_reporter.formats.counts.choice import Wanted
from host_reporter.formats.counts.counting import Counter
from host_reporter.formats.events import Described, Diverged, Ended, Event, Point
from host_reporter.formats.reading import Reading


def counted(*readings: Reading, wanted: Wanted | None = None) -> list[Event]:
    counter = Counter(wanted or Wanted())
    return [event for reading in readings for event in counter.count(reading)]


def points(*readings: Reading, wanted: Wanted | None = None) -> list[tuple[float, float | None]]:
    return [(e.iteration, e.metric) for e in counted(*readings, wanted=wanted) if isinstance(e, Point)]


def described(*readings: Reading, wanted: Wanted | None = None) -> Described:
    return [event for event in counted(*readings, wanted=wanted) if isinstance(event, Described)][-1]


@pytest.mark.parametrize("first", [0, 1, 7])
def test_epochs_and_steps_make_iterations_from_the_first_epoch_on(first: int) -> None:
    readings = [Reading(epoch=first + i, step=s, of=100) for i in range(3) for s in (10, 100)]
    assert [i for i, _ in points(*readings)] == [10, 100, 110, 200, 210, 300]


def test_epochs_times_steps_is_the_length_of_the_run() -> None:
    assert described(Reading(epoch=1, epochs=10, step=5, of=100)).iterations == 1000
    assert described(Reading(epoch=0, epochs=10, step=5, of=100)).iterations == 1000
    assert described(Reading(iteration=122, total=500000)).iterations == 500000
    # Epochs 1 to 4 were done by an earlier job.
    assert described(Reading(epoch=5, epochs=10, step=5, of=100)).iterations == 600


def test_the_last_of_the_epochs_from_0_may_have_the_number_of_all() -> None:
    assert described(*(Reading(epoch=n, epochs=2, step=5, of=5) for n in range(3))).iterations == 15
    assert described(*(Reading(epoch=n, epochs=2, metrics={"loss": 1}) for n in range(3))).iterations == 3
    assert described(*(Reading(epoch=n, epochs=3, step=5, of=5) for n in range(3))).iterations == 15
    assert described(*(Reading(epoch=n + 1, epochs=2, step=5, of=5) for n in range(2))).iterations == 10


def test_the_epoch_of_an_earlier_line_counts_for_the_steps_after_it() -> None:
    lines = [Reading(epoch=1, epochs=2), Reading(step=5, of=10), Reading(epoch=2, epochs=2), Reading(step=5, of=10)]
    assert [i for i, _ in points(*lines)] == [5, 15]
    assert described(*lines).iterations == 20


def test_steps_that_begin_anew_in_each_epoch_without_a_length() -> None:
    lines = [Reading(epoch=e, step=s) for e in (0, 1) for s in (50, 100)]
    assert [i for i, _ in points(*lines)] == [50, 100, 150, 200]


def test_steps_that_go_on_through_the_epochs_are_iterations() -> None:
    lines = [Reading(epoch=0, step=50), Reading(epoch=1, step=150), Reading(epoch=2, step=250)]
    assert [i for i, _ in points(*lines)] == [50, 150, 250]


def test_laps_without_an_epoch() -> None:
    assert [i for i, _ in points(*[Reading(step=s, of=10) for s in (5, 10, 5, 10)])] == [5, 10, 15, 20]


def test_epochs_without_steps_count_epochs_and_say_so() -> None:
    lines = [Reading(epoch=e, epochs=3, metrics={"loss": 1 / e}) for e in (1, 2, 3)]
    assert points(*lines) == [(1, 1.0), (2, 0.5), (3, 1 / 3)]
    assert described(*lines) == Described("loss", "min", 3, counts_epochs=True)
    heads = [
        Reading(epoch=1),
        Reading(metrics={"loss": 0.5}),
        Reading(epoch=2),
        Reading(metrics={"loss": 0.4}),
        Reading(epoch=3),
    ]
    assert points(*heads) == [(1, 0.5), (2, 0.4)]


def test_epochs_and_iterations_are_not_mixed_in_one_run() -> None:
    # As in a container, where the bar comes later than the dicts between its states.
    lines = [Reading(epoch=0.1, metrics={"loss": 3.0}), Reading(epoch=0.2, metrics={"loss": 2.9})]
    events = counted(*lines, Reading(step=30, total=300), Reading(epoch=0.3, metrics={"loss": 2.8}))
    place = events.index(Ended())
    assert [e.iteration for e in events[:place] if isinstance(e, Point)] == [0.1, 0.2]
    assert [(e.iteration, e.metric) for e in events[place:] if isinstance(e, Point)] == [(30, None), (30, 2.8)]
    assert [e for e in events if isinstance(e, Described)][-1].iterations == 300


def test_the_length_of_a_run_that_counts_epochs_is_in_epochs() -> None:
    dicts = [Reading(epoch=0.4, metrics={"loss": 3.0}), Reading(epoch=0.8, metrics={"loss": 2.0})]
    assert described(Reading(total=375), *dicts).iterations is None
    assert described(Reading(epochs=3), Reading(total=375), *dicts).iterations == 3


def test_parts_of_epochs_count() -> None:
    assert points(*[Reading(epoch=e, metrics={"loss": 1}) for e in (0.25, 0.5, 1.0)]) == [(0.25, 1), (0.5, 1), (1, 1)]


def test_of_several_metrics_the_declared_one_else_validation_else_loss() -> None:
    metrics = {"lr": 0.1, "accuracy": 0.8, "loss": 0.5, "val_accuracy": 0.7, "val_loss": 0.6}
    line = Reading(iteration=1, metrics=metrics)
    assert described(line, wanted=Wanted("Accuracy")).metric == "accuracy"
    assert described(line).metric == "val_loss"
    del metrics["val_loss"]
    assert described(line) == Described("val_accuracy", "max")
    del metrics["val_accuracy"]
    assert described(line) == Described("loss", "min")


def test_a_loss_beside_the_loss_is_not_the_metric() -> None:
    assert described(Reading(step=1, metrics={"load_balancing_loss": 1.0, "lm loss": 2.0})).metric == "lm loss"
    assert described(Reading(step=1, metrics={"aux_loss": 1.0, "mtp_1 loss": 9.0, "loss": 2.0})).metric == "loss"
    assert described(Reading(step=1, metrics={"val_z_loss": 1.0, "val_loss": 2.0})).metric == "val_loss"
    assert described(Reading(step=1, metrics={"aux_loss": 1.0})).metric == "aux_loss"
    assert described(Reading(step=1, metrics={"loss_rpn_cls": 1.0, "loss_cls": 1.0, "loss": 2.0})).metric == "loss"
    assert described(Reading(step=1, metrics={"loss_cls": 1.0, "loss_box": 1.0})).metric == "loss_cls"


def test_the_metric_of_a_run_stays() -> None:
    lines = [Reading(iteration=1, metrics={"loss": 2}), Reading(iteration=2, metrics={"accuracy": 3, "loss": 1})]
    assert points(*lines) == [(1, 2), (2, 1)]


TURNS = Wanted(validates=True)


def test_only_the_first_validation_takes_the_place_of_the_training() -> None:
    lines = [
        Reading(iteration=1, metrics={"loss": 2}),
        Reading(iteration=5, metrics={"val_loss": 3, "loss": 1}),
        Reading(iteration=6, metrics={"loss": 1}),
        Reading(iteration=10, metrics={"val_accuracy": 0.5, "val_loss": 2}),
    ]
    assert points(*lines, wanted=TURNS) == [(1, 2), (5, 3), (6, None), (10, 2)]
    assert described(*lines, wanted=TURNS).metric == "val_loss"
    assert described(*lines, wanted=Wanted("loss", validates=True)).metric == "loss"


def test_a_validation_at_the_end_alone_leaves_the_curve_of_the_training() -> None:
    lines = [Reading(iteration=i, total=100, metrics={"loss": 100 / i}) for i in (50, 100)]
    final = Reading(iteration=100, total=100, metrics={"eval_loss": 3})
    assert points(*lines, final, wanted=TURNS) == [(50, 2), (100, 1)]


def test_a_value_of_a_validation_that_stays_in_the_lines_counts_once() -> None:
    lines = [Reading(iteration=i, metrics={"val_loss": v}, lasting=True) for i, v in ((1, 3), (2, 3), (3, 2), (4, 2))]
    assert points(*lines, wanted=TURNS) == [(1, 3), (2, None), (3, 2), (4, None)]


def test_a_loop_of_another_length_is_none_of_the_run() -> None:
    run = [Reading(step=s, total=60) for s in (10, 20)]
    other = [Reading(step=s, total=1000) for s in (0, 30, 900)]
    counter = Counter(Wanted())
    events = [event for reading in (*run, *other, Reading(step=30, total=60)) for event in counter.count(reading)]
    assert [event.iteration for event in events if isinstance(event, Point)] == [10, 20, 30]
    assert [event.iterations for event in events if isinstance(event, Described)] == [60]
    assert counter.problem() is None


def test_a_program_that_begins_again_begins_a_run_or_goes_on_from_a_checkpoint() -> None:
    first = [Reading(iteration=i, metrics={"loss": 2}) for i in (10, 500, 1000)]
    head = [Reading(begun=True), Reading(total=2000)]
    anew = counted(Reading(begun=True), Reading(total=1000), *first, *head, *first)
    assert anew.count(Ended()) == 1
    assert [e.iterations for e in anew if isinstance(e, Described)][-1] == 2000
    resumed = counted(*first, *head, Reading(iteration=1010, total=2000))
    assert Ended() not in resumed
    assert resumed[-1] == Point(1010)
    # Another rank writes the same head somewhat later.
    assert Ended() not in counted(first[0], Reading(begun=True), Reading(iteration=20))


def test_a_direction_that_is_not_known_is_said_and_never_assumed() -> None:
    counter = Counter(Wanted("thing"))
    assert counter.count(Reading(iteration=1, metrics={"thing": 2}))[-1] == Point(1, None)
    assert "progress.direction" in str(counter.problem())
    assert points(Reading(iteration=1, metrics={"thing": 2}), wanted=Wanted("thing", "max")) == [(1, 2)]
    counter = Counter(Wanted())
    counter.count(Reading(iteration=1, metrics={"thing": 2}))
    assert "thing" in str(counter.problem())
    assert points(Reading(iteration=1, metrics={"t": 2}), wanted=Wanted(directions={"t": "min"})) == [(1, 2)]


def test_a_metric_waits_for_its_step_or_belongs_to_the_step_before() -> None:
    def loss(value: float) -> Reading:
        return Reading(metrics={"loss": value})

    first = Reading(iteration=1, metrics={"loss": 9})
    assert points(first, loss(3), Reading(iteration=2)) == [(1, 9), (1, 3), (2, None)]

    def step(value: float) -> Reading:
        return Reading(step=value)

    assert points(loss(3), step(1), loss(2), step(2)) == [(1, 3), (2, 2)]
    assert points(step(1), loss(3), step(2), loss(2)) == [(1, None), (1, 3), (2, None), (2, 2)]


def test_a_counter_that_goes_back_is_said_and_not_reported() -> None:
    counter = Counter(Wanted())
    events = [event for i in (10, 20, 5, 15, 25) for event in counter.count(Reading(iteration=i))]
    assert events == [Point(10), Point(20), Point(25)]
    assert "go back from 20 to 15" in str(counter.problem()) or "go back from 20 to 5" in str(counter.problem())


def test_one_line_of_a_summary_is_no_counter_that_goes_back() -> None:
    counter = Counter(Wanted())
    for i in (10, 20, 12, 30, 15):
        counter.count(Reading(iteration=i, metrics={"loss": 1.0}))
    assert counter.problem() is None
    counter.count(Reading(iteration=16))
    assert "go back from 30 to 16" in str(counter.problem())


def test_a_new_file_that_begins_near_the_start_is_a_new_run() -> None:
    counter = Counter(Wanted())
    for i in (10, 500, 1000):
        counter.count(Reading(iteration=i, metrics={"loss": i}))
    counter.begin_file()
    assert counter.count(Reading(iteration=10, metrics={"loss": 3})) == [
        Ended(),
        Described("loss", "min"),
        Point(10, 3),
    ]


def test_a_new_file_may_begin_with_the_head_of_an_epoch() -> None:
    counter = Counter(Wanted())
    for epoch in (1, 2, 3):
        counter.count(Reading(epoch=epoch, epochs=3))
        counter.count(Reading(step=100, of=100))
    counter.begin_file()
    assert counter.count(Reading(epoch=1, epochs=3)) == []
    assert counter.count(Reading(step=10, of=100)) == [Ended(), Described(iterations=300), Point(10)]
    assert counter.count(Reading(epoch=2, epochs=3)) == []
    assert counter.count(Reading(step=10, of=100)) == [Point(110)]


def test_a_new_file_that_goes_on_is_the_same_run() -> None:
    counter = Counter(Wanted())
    for i in (10, 1000):
        counter.count(Reading(iteration=i))
    counter.begin_file()
    assert counter.count(Reading(iteration=1010)) == [Point(1010)]
    counter.begin_file()
    assert counter.count(Reading(epoch=5, step=1, of=300)) == []


def test_a_file_that_is_written_again_from_its_start_is_the_same_run() -> None:
    counter = Counter(Wanted())
    for i in (10, 500, 1000):
        counter.count(Reading(iteration=i, metrics={"loss": i}))
    counter.begin_file()
    again = [Reading(iteration=i, metrics={"loss": i, "accuracy": 2 * i}) for i in (10, 500, 1000, 1500)]
    assert [event for reading in again for event in counter.count(reading)] == [Point(1500, 1500)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_has_diverged(value: float) -> None:
    found = counted(Reading(iteration=1, metrics={"accuracy": 0.1, "loss": value}))
    assert found[-1] == Point(1, None, diverged=True)
    assert counted(Reading(metrics={"loss": value}))[-1] == Diverged()
    # Gradients of mixed precision may overflow now and then.
    assert counted(Reading(iteration=1, metrics={"grad_norm": value}))[-1] == Point(1)


def test_an_end_begins_another_run() -> None:
    counter = Counter(Wanted())
    assert counter.count(Reading(iteration=5, metrics={"loss": 1}))[-1] == Point(5, 1)
    assert counter.count(Reading(ended=True)) == [Ended()]
    assert counter.count(Reading(iteration=1, metrics={"loss": 2})) == [Described("loss", "min"), Point(1, 2)]


def test_a_slip_does_not_hold_up_what_comes_after_it() -> None:
    counter = Counter(Wanted())
    events = [event for i in (10, 9e14, 20, 30) for event in counter.count(Reading(iteration=i))]
    assert events == [Point(10), Point(20), Point(30)]
    assert "9e+14 is not believed" in str(counter.problem())
    assert [i for i, _ in points(Reading(iteration=10), Reading(iteration=9e9), Reading(iteration=9.1e9))] == [
        10,
        9.1e9,
    ]
    lines = [Reading(iteration=i) for i in (5, 901, 6)]
    assert [i for i, _ in points(*lines, wanted=Wanted(iterations=100))] == [5, 6]


def test_bars_of_another_length_in_a_named_epoch_are_of_another_loop() -> None:
    epochs = [Reading(epoch=1), Reading(epoch=2)]
    bars = [Reading(step=10, of=20), Reading(step=20, of=20), Reading(step=1, of=4), Reading(step=4, of=4)]
    assert [i for i, _ in points(epochs[0], *bars, epochs[1], *bars)] == [10, 20, 30, 40]


def test_an_epoch_may_have_another_length_than_the_one_before() -> None:
    lines = [
        Reading(epoch=1),
        Reading(step=20, of=20),
        Reading(epoch=2),
        Reading(step=5, of=10),
        Reading(step=10, of=10),
    ]
    assert [i for i, _ in points(*lines)] == [20, 25, 30]


def test_the_length_of_an_epoch_is_known_after_the_first_one() -> None:
    lines = [Reading(epoch=1), Reading(step=14), Reading(epoch=2), Reading(step=5, of=14), Reading(epoch=3)]
    assert [i for i, _ in points(*lines, Reading(step=5, of=14))] == [14, 19, 33]


def test_iterations_since_the_line_before_add_up() -> None:
    assert points(*[Reading(more=m, metrics={"reward": m}) for m in (18, 23, 41)]) == [(18, 18), (41, 23), (82, 41)]
