"""The general reader on lines as many programs write them, without their presets: a guess, and a useful one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from host_reporter.formats.matching import Matcher
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.presets.general import PRESET
from host_reporter.formats.recognition import Recognition
from tests.support.agent.logs import Parsed, interpreted

LOGS = Path(__file__).parents[4] / "data" / "guessed_logs"
"""Logs of a few lines, and what is to be read from them."""

EXPECTED = json.loads((LOGS / "expected.json").read_text())


def guessed(text: str) -> Parsed:
    return interpreted(text.splitlines(), Interpreter(Recognition({PRESET.name: Matcher(PRESET)})))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_log_of_another_program(name: str) -> None:
    found = guessed((LOGS / f"{name}.log").read_text())
    assert found.is_guess
    assert found.points == [tuple(point) for point in EXPECTED[name]["points"]]
    assert found.described.metric == EXPECTED[name]["metric"]
    assert found.described.iterations == EXPECTED[name]["iterations"]


@pytest.mark.parametrize(
    "line",
    [
        "Num Epochs = 3",
        "Total optimization steps = 345",
        "saving every 500 steps",
        "max_steps: 1000",
        "warmup steps = 10",
        "loading 60,000 samples",
        "epoch loop begins",
    ],
)
def test_settings_are_no_progress(line: str) -> None:
    assert guessed(line).points == []


@pytest.mark.parametrize(
    ("line", "point"),
    [
        ("1|20|Loss: 4.4603960396:  20%|###  | 20/100 [00:10<10:00, 1.1s/it]", (20, 4.4603960396)),
        ("step 20: loss tensor(0.4, device='cuda:0', grad_fn=<NllLossBackward0>)", (20, 0.4)),
        ("{'step': 20, 'loss': '0.5'}", (20, 0.5)),
        ("step 20 'loss': '0.5',", (20, 0.5)),
        ("[    20] | loss=0.5 | elapsed=1.0s", (20, 0.5)),
        ("step 20 loss 0.5 at 10:20:30", (20, 0.5)),
        ("step 20 loss 4.", (20, 4)),
    ],
)
def test_a_number_is_read_to_its_end_and_without_what_stands_around_it(line: str, point: tuple[float, float]) -> None:
    assert guessed(line).points == [point]


def test_a_speed_is_no_step() -> None:
    line = "| epoch   {} |   200/ 2983 batches | lr 20.00 | ms/batch 10.1 | loss  2.50 | ppl 12.18"
    assert guessed(f"{line.format(1)}\n{line.format(2)}\n").points == [(200, 2.5), (3183, 2.5)]


def test_the_share_of_a_bar_is_no_step() -> None:
    lines = "steps:  {}%|##   | {}/1000 [00:10<01:00,  1.0it/s, avr_loss={}]\n"
    assert guessed(lines.format(12, 120, 0.5) + lines.format(12, 121, 0.4)).points == [(120, 0.5), (121, 0.4)]


def test_a_bar_of_epochs_around_a_bar_of_steps() -> None:
    bar = "Iteration: 50%|##  | {}/4 [00:01<00:01, loss={}]\n"
    text = "".join(
        f"Epoch: {epoch * 50}%|##  | {epoch}/2 [00:01<00:01]\n"
        + "".join(bar.format(s, 3 - epoch) for s in (1, 2, 3, 4))
        for epoch in (0, 1)
    )
    assert guessed(text).points == [(n, 3 if n < 5 else 2) for n in range(1, 9)]


@pytest.mark.parametrize(
    ("lines", "point", "length"),
    [
        ("[0/25][50/100] Loss_D: 0.5 Loss_G: 2.0\n[1/25][50/100] Loss_D: 0.4 Loss_G: 2.1\n", (150, 0.4), 2500),
        ("[ 10/500] 2% loss 0.5\n[ 20/500] 4% loss 0.4\n", (20, 0.4), 500),
    ],
)
def test_counters_in_brackets(lines: str, point: tuple[float, float], length: float) -> None:
    found = guessed(lines)
    assert (found.points[-1], found.described.iterations) == (point, length)


def test_the_epoch_and_the_step_in_front_of_a_line() -> None:
    found = guessed("[1,  2000] loss: 2.2\n[1,  4000] loss: 2.1\n[2,  2000] loss: 2.0\n")
    assert found.points == [(2000, 2.2), (4000, 2.1), (6000, 2.0)]


def test_numbers_as_people_write_them() -> None:
    found = guessed("step 1,200/12k loss: 0,853\nstep 1_300/12k loss: 1.2e-3\nstep 1400/12k loss: 12%\n")
    assert found.points == [(1200, 0.853), (1300, 0.0012), (1400, 12)]
    assert found.described.iterations == 12000
