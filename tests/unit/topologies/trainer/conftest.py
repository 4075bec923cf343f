"""Trainers that are gone when a test is over."""

from __future__ import annotations

import pytest

from tests.support.trainer.processes import Lab


@pytest.fixture
def lab(tmp_path):
    made: list[Lab] = []

    def make(jobs: list[dict[str, object]], limit: float = 60.0, **more: object) -> Lab:
        made.append(Lab(tmp_path, jobs, limit, **more))
        return made[-1]

    yield make
    for trainer in (trainer for each in made for trainer in each.trainers.values()):
        if trainer.poll() is None:
            trainer.kill()
        trainer.communicate()
