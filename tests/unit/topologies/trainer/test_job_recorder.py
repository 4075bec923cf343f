"""The pattern of the trainer's log lines."""

from __future__ import annotations

from topologies.trainer.job_recorder import PATTERN


def test_the_pattern_has_the_reporters_groups():
    assert "(?P<iteration>" in PATTERN
    assert "(?P<metric>" in PATTERN
