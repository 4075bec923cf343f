"""How fast jobs train, of samples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.cli.top.contention import load_of
from controller.cli.top.document import document
from controller.cli.top.frame import Paper, frame
from controller.cli.top.paces import alone, in_words, paces
from controller.cli.top.picture import Picture, Reading, after_reading
from controller.endpoints.servers import Servers
from controller.wire import HistoryView, JobHistory
from tests.support.controller.cli.pictures import job, jobs, network, plan


def samples(**iterations_by_job: list[float | None]) -> HistoryView:
    """Returns samples of 5 s."""
    empty: dict[str, tuple[float | None, ...]] = dict.fromkeys(JobHistory.model_fields, ())
    known = {
        name: JobHistory(**empty | {"iterations_done": tuple(done)}) for name, done in iterations_by_job.items()
    }  # fmt: skip
    return HistoryView(since=0.0, step_seconds=5.0, steps=8, jobs=known, ports={}, left_out=0)


@pytest.mark.parametrize(
    ("done", "pace"),
    [([0, 5, 10, 15], 1.0), ([None, 0, None, 10, None], 1.0), ([7, 7, 7], 0.0), ([900, 3, 8], 1.0), ([3], None),
     ([9, 4], None), ([None, None], None), ([], None)],
)  # fmt: skip
def test_a_pace_is_that_of_the_present_run(done: list[float | None], pace: float | None) -> None:
    assert paces(samples(a=done)).get("a") == pace


def test_alone_a_job_computes_and_then_sends() -> None:
    declared = job("a", 0, ("h1", "h2", 25e6), spec={"compute_seconds": 0.3})
    load = load_of(declared, Servers({}))
    assert alone(declared, load) == pytest.approx(2.0), "0.3 s of computing, and 0.2 s at the usual rate of a port"
    assert alone(declared.model_copy(update={"iterations_of_epoch": 10.0}), load) == pytest.approx(1 / 3.2)
    assert alone(job("a", 0, ("h1", "h2", 25e6)), load) is None, "it does not say how long it computes"


def test_a_pace_is_told_with_that_of_the_job_alone_where_it_is_slower() -> None:
    assert in_words(None, 2.0) == "-"
    assert in_words(0.8, None) == "0.8/s"
    assert in_words(0.8, 1.1) == "0.8/s of 1.1/s"
    assert in_words(0.05, 0.5) == "3/min of 0.5/s"
    assert in_words(1.05, 1.1) == "1.1/s", "so little is no difference"


def test_the_picture_and_the_document_say_how_fast_running_jobs_are() -> None:
    reading = Reading(
        status=None, settings=None, plan=plan(("a",), ("b",)), network=network(), history=samples(a=[0, 4], b=[1, 2]),
        jobs=jobs(
            job("a", 0, ("h1", "h2", 25e6), spec={"compute_seconds": 0.3}),
            job("b", 1, ("h1", "h2", 25e6), state="waiting"),
        ),
    )  # fmt: skip
    picture = after_reading(Picture(), reading, 0.0)
    lines = ["".join(text for text, _ in line) for line in frame(picture, 1.0, Paper(130))]
    assert next(line for line in lines if line.startswith("0 ")).count(" 0.8/s of 2/s ") == 1
    assert "/s" not in next(line for line in lines if line.startswith("1 "))
    told = {each["id"]: each["iterations_per_second"] for each in document(picture)["jobs"]}
    assert told == {"a": 0.8, "b": None}
    silent = replace(picture, paces={})
    assert [each["alone_iterations_per_second"] for each in document(silent)["jobs"]] == [pytest.approx(2.0), None]
