"""Iterations from one file, the metric from another."""

from __future__ import annotations

from pathlib import Path

from host_reporter.formats.events import Described, Point
from host_reporter.readers.auto import auto_source
from host_reporter.readers.location import Location
from host_reporter.readers.sources.joined import JoinedSource
from tests.support.agent.sources import events, points


def joined(tmp_path: Path, steps: str, metrics: str) -> JoinedSource:
    sources = []
    for name, text in (("steps.csv", steps), ("metrics.csv", metrics)):
        (tmp_path / name).write_text(text)
        sources.append(auto_source(Location(tmp_path / name, name)))
    return JoinedSource(*sources)


def test_a_metric_waits_for_the_next_step_by_its_time(tmp_path: Path) -> None:
    steps = "time,step\n1,10\n2,20\n3,30\n"
    metrics = "time,epoch,loss\n1.5,1,0.9\n2.5,2,0.8\n"
    source = joined(tmp_path, steps, metrics)
    found = events(source)
    assert [e for e in found if isinstance(e, Point)] == [
        Point(10, None, 1.0),
        Point(20, 0.9, 2.0),
        Point(30, 0.8, 3.0),
    ]
    last = [e for e in found if isinstance(e, Described)][-1]
    assert (last.metric, last.direction) == ("loss", "min")


def test_without_times_the_latest_metric_counts(tmp_path: Path) -> None:
    source = joined(tmp_path, "step\n10\n", "epoch,loss\n1,0.9\n2,0.8\n")
    assert points(source) == [(10, 0.8)]
    with (tmp_path / "metrics.csv").open("a") as file:
        file.write("3,0.7\n")
    assert points(source) == []
    with (tmp_path / "steps.csv").open("a") as file:
        file.write("20\n")
    assert points(source) == [(20, 0.7)]


def test_a_source_that_is_not_there_is_said(tmp_path: Path) -> None:
    source = joined(tmp_path, "step\n10\n", "epoch,loss\n1,0.9\n")
    (tmp_path / "metrics.csv").unlink()
    other = JoinedSource(auto_source(Location(tmp_path / "steps.csv", "s")), auto_source(Location(tmp_path / "m", "m")))
    events(other)
    assert other.problem() == "m: not there yet"
    source.close()
