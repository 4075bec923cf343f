"""The settings of lossless priorities: how many classes they leave, what is refused, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.config.config import ConfigError
from controller.config.needs import needs
from controller.process.startup import dataplane_settings
from tests.support.controller.settings_file import load


@pytest.mark.parametrize(
    ("text", "classes", "queues"),
    [
        ("", 7, ()),
        ("lossless:\n", 7, ()),
        ("lossless: {priorities: [4, 3]}\n", 2, (4, 3)),
        ("classes: 2\nlossless: {priorities: [3, 4]}\n", 2, (3, 4)),
        ("lossless: {priorities: [7]}\n", 1, (7,)),
    ],
)
def test_there_are_as_many_classes_as_lossless_priorities(
    tmp_path: Path, text: str, classes: int, queues: tuple[int, ...]
) -> None:
    config = load(tmp_path, text)
    assert (config.classes, dataplane_settings(config, {}).queue_numbers) == (classes, queues)
    assert len(config.code_points.classes) == classes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lossless: {priorities: []}\n", ":1: lossless.priorities: "),
        ("lossless: {}\n", ":1: lossless.priorities: "),
        ("lossless: [3, 4]\n", ":1: lossless: it must be a mapping of settings, or be left out"),
        ("lossless: {priorities: [8]}\n", ":1: lossless.priorities[0]: "),
        ("lossless: {priorities: [3, 3]}\n", "priority 3 is there twice; name each once"),
        ("lossless: {priorities: [0, 3]}\n", "priority 0 is that of all other traffic"),
        ("lossless: {priorities: [6]}\n", "priority 6 is that of RoCE's congestion notification (CNP, DSCP 48)"),
        (
            "classes: 3\nlossless: {priorities: [3, 4]}\n",
            ":2: lossless: there are 2 lossless priorities and 3 classes; leave classes out",
        ),
        (
            "dscp: {jobs: [3, 48]}\nlossless: {priorities: [3]}\n",
            ":2: lossless: RoCE's congestion notification (CNP) has DSCP 48",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_field(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "lossless: {priorities: [4, 3]}\n",
            "so the order is cut into 2 classes, with queue 4, 3 at switches, first to last",
        ),
        ("identity: dscp\nlossless: {priorities: [4]}\n", "so the order is cut into 1 class, with queue 4 at switches"),
        ("queues: existing\nlossless: {priorities: [4, 3]}\n", "with the controller, which have queue 0, 4, 3"),
    ],
)
def test_the_number_of_classes_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert said in "\n".join(needs(load(tmp_path, text)))
