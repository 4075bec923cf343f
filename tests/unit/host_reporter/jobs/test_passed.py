"""A metric that comes late has the time of its own iteration."""

from __future__ import annotations

import time
from pathlib import Path

from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.passed import MAX_KEPT, PassedIterations
from tests.support.agent.followed_jobs import World


def test_the_time_of_an_iteration_that_was_passed() -> None:
    passed = PassedIterations()
    assert [passed.time_of(iteration, wall) for iteration, wall in ((10, 1.0), (20, 2.0), (20, 3.0))] == [1, 2, 3]
    assert [passed.time_of(iteration, 9.0) for iteration in (20, 15, 10, 5)] == [9, 2, 1, 1]
    assert passed.time_of(30, 8.0) == 8.0


def test_what_is_kept_is_bounded() -> None:
    passed = PassedIterations()
    for iteration in range(10 * MAX_KEPT):
        passed.time_of(iteration, float(iteration))
    assert abs(passed.time_of(9.5 * MAX_KEPT, 1e9) - 9.5 * MAX_KEPT) <= 2
    assert passed.time_of(0, 1e9) == 0


def test_lines_that_come_in_a_block_have_the_times_of_their_steps(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.job(progress={"log": str(world.log)})
    try:
        world.start()
        bar = "\r 33%|####      | {}/60 [00:01<00:00, 50.43it/s]\r"
        line = "{{'loss': '{}', 'grad_norm': '1.1', 'learning_rate': '0.0028', 'epoch': '{}'}}\n"
        with world.log.open("w") as log:
            log.write(bar.format(5) + line.format(9, 0.125) + bar.format(5))
            for step in (10, 20, 30):
                log.write(bar.format(step))
                log.flush()
                wait_until(lambda step=step: step in world.receiver.points("a"), 20)
                time.sleep(0.02)
            log.writelines(line.format(1 / epoch, epoch) for epoch in (0.25, 0.5, 0.75))
            log.write(bar.format(30))
            log.flush()
        wait_until(lambda: sum(point.metric is not None for point in world.receiver.added) == 4, 20)
    finally:
        world.stop()
    passed = {point.iteration: point.time for point in world.receiver.added if point.metric is None}
    late = {point.iteration: point.time for point in world.receiver.added if point.metric is not None}
    assert late.keys() == {5, 10, 20, 30}
    assert (late[10], late[20]) == (passed[10], passed[20])
