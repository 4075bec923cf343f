"""The presets of training frameworks read all kinds of their lines."""

from __future__ import annotations

from host_reporter.formats.events import Point
from tests.support.agent.logs import interpreted


def test_maxtext_without_prefixes_and_with_a_restart() -> None:
    line = "completed step: {}, seconds: 1.150, TFLOP/s/device: 54.938, Tokens/s/device: 7123.478, loss: {}"
    config = "Config param steps: 50"
    lines = [config, *(line.format(step, 10 - step / 10) for step in range(40))]
    resumed = interpreted([*lines, config, line.format(40, 5.5)])
    assert (resumed.preset, resumed.ends, resumed.points[-1]) == ("maxtext", 0, (41, 5.5))
    assert interpreted([*lines, *lines]).ends == 1
    diverged = interpreted([*lines, line.format(40, "nan")]).events[-1]
    assert isinstance(diverged, Point)
    assert diverged.diverged


def test_flax_s_epochs_without_clu() -> None:
    line = "I0416 10:11:09.250075 140490496024640 train.py:150] epoch:{:3d}, train_loss: 0.2{}, train_accuracy: 93.1, "
    line += "test_loss: 0.1{}, test_accuracy: 96.2"
    clu = "I0416 10:11:10.120311 140490496024640 logging_writer.py:48] [0] model/num_params=25557032"
    found = interpreted([clu, *(line.format(epoch, 9 - epoch, 9 - epoch) for epoch in (1, 2))])
    assert (found.preset, found.described.metric) == ("flax", "test_loss")


def test_flax_s_loss_that_is_no_number() -> None:
    prefix = "I0416 10:11:10.120311 140490496024640 logging_writer.py:48] "
    found = interpreted([f"{prefix}[{step}] accuracy=0.1, loss={loss}" for step, loss in ((10, "2.5"), (20, "nan"))])
    assert (found.preset, found.points) == ("flax", [(10, 2.5), (20, None)])
    assert any(isinstance(event, Point) and event.diverged for event in found.events)
