"""Tasks that compute share the processors of their host."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from topologies.experiments.experiment import Experiment
from topologies.trainer.processor import Processor, Shares

PATIENCE_SECONDS = 10.0
"""However busy the machine is, a thread is woken within this time."""


def test_as_many_tasks_as_processors_compute_at_full_speed() -> None:
    shares = Shares(2)
    first, second = shares.begin(0.0, 3.0), shares.begin(0.0, 4.0)
    assert (shares.left(1.0, first), shares.left(1.0, second)) == (2.0, 3.0)
    assert shares.end(3.0, first) is second
    assert shares.left(3.0, second) == 1.0
    assert shares.end(4.0, second) is None


def test_more_tasks_share_and_who_has_less_to_do_ends_first() -> None:
    shares = Shares(1)
    short, long = shares.begin(0.0, 3.0), shares.begin(0.0, 6.0)
    assert shares.left(0.0, short) == 6.0, "at half speed"
    assert shares.end(6.0, short) is long
    assert shares.left(6.0, long) == 3.0, "it has done three seconds, and hurries on"


def test_a_task_that_comes_later_slows_the_one_that_computes() -> None:
    shares = Shares(1)
    first = shares.begin(0.0, 5.0)
    second = shares.begin(3.0, 4.0)
    assert shares.left(3.0, first) == 4.0
    assert shares.end(7.0, first) is second
    assert shares.left(7.0, second) == 2.0


def test_a_task_that_goes_before_its_end_lets_the_others_go_on_faster() -> None:
    shares = Shares(1)
    doomed, other, last = shares.begin(0.0, 60.0), shares.begin(0.0, 6.0), shares.begin(0.0, 9.0)
    assert shares.end(3.0, doomed) is other, "it has done one second"
    assert shares.left(3.0, other) == 10.0
    assert shares.end(13.0, other) is last


@given(st.integers(1, 4), st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 10)), min_size=1, max_size=12))
def test_all_work_is_done_once_and_no_processor_idles_while_tasks_wait(
    processors: int, planned: list[tuple[float, float]]
) -> None:
    shares, coming = Shares(processors), sorted(planned)
    now, work, computing = 0.0, 0.0, []
    while coming or computing:
        soonest = min(computing, key=lambda task: task.due, default=None)
        until = min(
            now + shares.left(now, soonest) if soonest is not None else float("inf"),
            coming[0][0] if coming else float("inf"),
        )
        work += min(processors, len(computing)) * (until - now)
        now = until
        if soonest is not None and shares.left(now, soonest) <= 1e-9:
            computing.remove(soonest)
            shares.end(now, soonest)
        else:
            computing.append(shares.begin(now, coming.pop(0)[1]))
    assert work == pytest.approx(sum(seconds for _, seconds in planned))


def test_threads_compute_together_and_none_ends_too_early() -> None:
    processor, start = Processor(3), time.monotonic()
    with ThreadPoolExecutor(12) as pool:
        computing = [pool.submit(processor.compute, 0.05, threading.Event()) for _ in range(12)]
        assert all(task.result(PATIENCE_SECONDS) for task in computing)
    assert time.monotonic() - start >= 0.2, "0.6 s of work on three processors"


def test_a_thread_that_computes_is_woken_to_stop() -> None:
    processor, stopped = Processor(1), threading.Event()
    with ThreadPoolExecutor(2) as pool:
        doomed = pool.submit(processor.compute, 1000.0, stopped)
        stopped.set()
        assert doomed.result(PATIENCE_SECONDS) is False
        assert processor.compute(0.01, threading.Event())


def test_nothing_to_compute_takes_no_time() -> None:
    assert Processor(1).compute(0.0, threading.Event())


def experiment(**values: object) -> Experiment:
    job = {
        "id": "a", "arrival": 0.0, "architecture": "ps", "hosts": ["h1", "h2"], "port": 5000, "model": "m",
        "model_bytes": 1000, "compute_seconds": 0.1, "iterations": 10, "curve": "digits-linear-40",
    }  # fmt: skip
    return Experiment.model_validate({"name": "x", "jobs": [job | values.pop("job", {})]} | values)


def test_only_tasks_of_one_process_that_compute_in_turn_share() -> None:
    assert experiment(processors=6).processors == 6
    with pytest.raises(ValidationError, match="is for processes: host"):
        experiment(processors=6, processes="job")
    with pytest.raises(ValidationError, match="is for jobs with sync bsp; job a has ssp:2"):
        experiment(processors=6, job={"sync": "ssp:2"})
