"""Lines of a recording: what is read, passed over and refused."""

from __future__ import annotations

import json

import pytest

from simulator.errors import InputError
from simulator.recorded.lines import Gap, Host, Job, Plan, events

JOB = {
    "id": "a",
    "state": "running",
    "progress": {"iterations_done": 3.0, "iterations_total": 9.0, "last_metric": 0.5, "last_report": 7.0},
    "service_class": 0,
    "targets": {},
}


def line(event: str, data: object, time: object = 1.5) -> str:
    return json.dumps({"id": 1, "event": event, "time": time, "data": data})


def test_what_the_estimate_needs_is_read_and_the_rest_is_passed_over() -> None:
    lines = [
        line("job", JOB),
        "",
        line("problem", {"problem": "paused", "state": "gone"}),
        line("plan", {"policy": "las", "epoch": 1}),
        line("host", {"name": "h1", "state": "alive", "egress_bps": 1e9, "ingress_bps": 2e9}),
        line("gap", {"first": 3, "last": 5}),
        line("later-than-this-version", None),
    ]
    found = [data for _, data in events("\n".join(lines) + "\n", "f")]
    assert [type(data) for data in found] == [Job, Plan, Host, Gap]
    assert isinstance(found[0], Job) and found[0].progress is not None
    assert found[0].progress.iterations_done == 3.0


def test_the_last_line_may_be_cut_off_and_no_other() -> None:
    text = line("job", JOB)
    assert len(list(events(f"{text}\n{text[:40]}", "f"))) == 1
    with pytest.raises(InputError, match=r"f:2: is no JSON; --events reads an event a line"):
        list(events(f"{text}\n{text[:40]}\n{text}\n", "f"))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("7", r"f:1: \(line\): "),
        (line("job", JOB, time="soon"), "f:1: time: "),
        (line("job", JOB, time=float("nan")), "f:1: time: "),
        (line("job", JOB | {"state": "flying"}), "f:1: data: state: "),
        (line("job", JOB | {"progress": {"iterations_done": -1}}), "f:1: data: progress.iterations_done: "),
        (line("job", None), r"f:1: data: \(line\): "),
        (line("host", {"name": "h1", "egress_bps": 0}), "f:1: data: egress_bps: "),
        ("[" * 100_000 + "\n", "f:1: is no JSON"),
    ],
)
def test_what_is_no_event_is_refused_with_its_place(bad: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        list(events(bad + "\n", "f"))
