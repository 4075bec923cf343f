"""The presets of Keras and Lightning read their bars in all forms, also those that no recording has."""

from __future__ import annotations

from host_reporter.formats.events import Point
from tests.support.agent.logs import Parsed, interpreted


def diverges(found: Parsed) -> bool:
    return any(isinstance(event, Point) and event.diverged for event in found.events)


def keras(epoch: int, *steps: int, loss: str = "0.5", of: int = 14, val: bool = False, epochs: int = 5) -> list[str]:
    bars = [f"{step}/{of} [=====>....] - ETA: 0s - loss: {loss} - accuracy: 0.5" for step in steps]
    end = f"{of}/{of} [==========] - 1s 26ms/step - loss: {loss} - accuracy: 0.6"
    return [f"Epoch {epoch}/{epochs}", *bars, end, *([f"{end} - val_loss: 0.{9 - epoch}"] if val else [])]


def test_keras_without_validation_has_the_loss() -> None:
    found = interpreted([*keras(1, 5, loss="0.9"), *keras(2, 5, loss="0.8")])
    assert (found.preset, found.described.metric, found.described.iterations) == ("keras", "loss", 70)
    assert found.points == [(5, 0.9), (14, 0.9), (19, 0.8), (28, 0.8)]


def test_keras_shows_the_end_of_an_epoch_before_it_is_validated() -> None:
    found = interpreted([*keras(1, 5, val=True), *keras(2, 5, val=True)])
    assert (found.described.metric, found.points[-3:]) == ("val_loss", [(19, None), (28, None), (28, 0.7)])


def test_keras_counts_an_unknown_epoch_until_it_is_known() -> None:
    first = ["Epoch 1/3", "     10/Unknown - 1s 12ms/step - loss: 0.9", "     14/Unknown - 1s 12ms/step - loss: 0.8"]
    found = interpreted([*first, *keras(2, 5, epochs=3)])
    assert (found.preset, found.points) == ("keras", [(10, 0.9), (14, 0.8), (19, 0.5), (28, 0.5)])


def test_keras_s_bars_of_predictions_and_of_evaluations_do_not_count() -> None:
    predicted = "4/4 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step"
    evaluated = "4/4 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - accuracy: 0.8 - loss: 0.4"
    found = interpreted([*keras(1, val=True), predicted, evaluated, *keras(2, val=True)])
    assert [done for done, _ in found.points] == [14, 14, 28, 28]
    assert found.ends == 0


def test_keras_again_in_the_same_file_is_a_new_run() -> None:
    fit = [*keras(1, 5, val=True), *keras(2, 5, val=True)]
    found = interpreted([*fit, *fit])
    assert (found.ends, [done for done, _ in found.points]) == (1, [5, 14, 14, 19, 28, 28] * 2)


def test_keras_resumed_goes_on() -> None:
    found = interpreted([*keras(3, 5), *keras(4, 5)])
    assert (found.points, found.described.iterations) == ([(5, 0.5), (14, 0.5), (19, 0.5), (28, 0.5)], 42)


def test_keras_diverges_in_the_middle_of_an_epoch() -> None:
    assert diverges(interpreted([*keras(1, 5), *keras(2, 5, loss="nan")[:2]]))
    assert not diverges(interpreted(keras(1, 5)))


def test_a_bar_of_keras_that_is_overwritten_counts() -> None:
    bar = " 5/14 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - loss: 0.4000"
    assert interpreted(["Epoch 1/5", bar + "\b" * len(bar), *keras(1)[1:]]).points == [(5, 0.4), (14, 0.5)]


def lightning(epoch: int, *steps: int, post: str = "v_num=3, loss=0.5", of: int = 10) -> list[str]:
    return [f"Epoch {epoch}:  50%|#####     | {step}/{of} [00:01<00:01, 9.87it/s, {post}]" for step in steps]


def test_lightning_counts_epochs_from_0_and_goes_on_from_a_checkpoint() -> None:
    found = interpreted([*lightning(4, 5, 10), *lightning(5, 0, 5)])
    assert (found.preset, found.points) == ("lightning", [(5, 0.5), (10, 0.5), (15, 0.5)])


def test_lightning_again_in_the_same_file_is_a_new_run() -> None:
    fit = ["Training: |          | 0/? [00:00<?, ?it/s]", *lightning(0, 5, 10), *lightning(1, 5, 10)]
    found = interpreted([*fit, "`Trainer.fit` stopped: `max_epochs=2` reached.", *fit])
    assert (found.ends, [done for done, _ in found.points]) == (1, [5, 10, 15, 20] * 2)


def test_lightning_tells_its_length_when_it_stops() -> None:
    stopped = "`Trainer.fit` stopped: `max_epochs=2` reached."
    begin, end = lightning(0, 5, 10), lightning(1, 10)
    assert interpreted([*begin, *end]).described.iterations is None
    for lines in ([*begin, *end, stopped], [*begin, end[0] + stopped]):
        assert (interpreted(lines).described.iterations, interpreted(lines).points[-1]) == (20, (20, 0.5))


def test_lightning_s_old_validation_is_not_read_again() -> None:
    post = "v_num=3, train_loss={}, val_loss={}"
    lines = [
        *lightning(0, 5, 10, post="v_num=3, train_loss=0.9"),
        *lightning(0, 10, post=post.format(0.9, 0.8)),
        *lightning(1, 5, post=post.format(0.7, 0.8)),
        *lightning(1, 10, post=post.format(0.6, 0.8)),
        *lightning(1, 10, post=post.format(0.6, 0.5)),
    ]
    assert interpreted(lines).points == [(5, 0.9), (10, 0.9), (10, 0.8), (15, None), (20, None), (20, 0.5)]


def test_lightning_without_a_length_and_with_a_loss_that_is_no_number() -> None:
    lines = [
        f"Epoch 0: : {step}it [00:01, 9.8it/s, v_num=1, train_loss={loss}]" for step, loss in ((1, 0.5), (2, "nan"))
    ]
    found = interpreted(lines)
    assert (found.preset, found.points, diverges(found)) == ("lightning", [(1, 0.5), (2, None)], True)


def test_rich_s_last_picture_in_a_file_tells_epochs_and_metrics() -> None:
    lines = [
        "Epoch 3/3  ━━━━━━━━━━ 15/15 0:00:00 • 0:00:00 58.75it/s v_num: 0.000     ",
        " " * 63 + "val_loss: 0.325  ",
    ]
    found = interpreted(lines)
    assert (found.preset, found.points, found.described.iterations) == ("lightning", [(15, None), (15, 0.325)], 15)
