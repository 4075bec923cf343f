"""What the registry takes and refuses: jobs, reports, flows, stages; the same state from any order of reports."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.journal.store import Store
from controller.model import Flow
from controller.refusals import Conflict, Invalid, NotFound
from controller.registry.records import MAX_ROWS
from controller.registry.registry import Change
from controller.wire import HostReport, StageSpec
from tests.support.controller.registry.registry_world import HOSTS, Clock, World, job_spec, progress
from tests.support.controller.registry.unpaused import UnpausedRegistry, dequeued


def test_put_is_idempotent(world: World) -> None:
    assert world.put() is Change.CREATED
    before = world.snapshot()
    assert world.put() is Change.UNCHANGED
    assert world.snapshot() == before
    assert world.triggers == ["registration"]


def test_a_changed_body_replaces_and_keeps_the_run(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", (5, 0.5), sent_bytes=7.0)])
    world.clock.now += 10
    assert world.put(weight=3.0) is Change.REPLACED
    (job,) = world.snapshot().jobs
    assert (job.weight, job.arrival, job.iterations_done, job.sent_bytes) == (3.0, 1000.0, 5.0, {"h1": 7.0})
    assert world.triggers == ["registration", "registration"]


def test_another_metric_begins_another_history(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", (5, 0.5))])
    world.put(metric={"name": "loss", "direction": "min"})
    assert world.snapshot().jobs[0].progress == ()


def test_registration_after_the_end_is_a_new_run(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", (5, 0.5), sent_bytes=9.0, ended=True)])
    assert world.snapshot().jobs == ()
    assert world.registry.job_state("a").state == "ended"
    world.clock.now += 100
    assert world.put() is Change.CREATED
    (job,) = world.snapshot().jobs
    assert (job.arrival, job.progress, job.sent_bytes) == (1100.0, (), {})


def test_late_reports_of_an_earlier_run_do_not_touch_the_next(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", (1, 0.1))], sent_at=1000.0)
    world.tell(jobs=[progress("a", ended=True)])
    world.clock.now = 2000.0
    world.put()
    late = {"job": "a", "points": [{"iteration": 50, "time": 990.0, "metric": 0.9}], "sent_bytes": 1e9, "ended": True}
    reasons = [part.reason for part in world.tell(jobs=[late], sent_at=995.0).refused]
    assert [reason.partition(" from before this run of the job")[0] for reason in reasons] == [
        "1 points are",
        "the end is",
    ]
    (job,) = world.snapshot().jobs
    assert (job.progress, job.sent_bytes) == ((), {})


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"tasks": [{"role": "ps", "host": "h9"}]}, "tasks.0.host"),
        ({"demand": [{"src": "h1", "dst": "nope", "bytes": 1.0}]}, "demand.0.dst"),
        ({"flows": [{"src": "nope", "dst": "h1", "dst_port": 1}]}, "flows.0.src"),
        (
            {"tasks": [{"role": "peer", "host": "h1", "port": 7}, {"role": "peer", "host": "h1", "port": 7}]},
            "tasks.1.port",
        ),
    ],
)
def test_a_bad_spec_is_refused_by_field_and_changes_nothing(world: World, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        world.put(**spec)
    assert caught.value.errors[0][0] == field
    assert world.snapshot().jobs == ()
    assert world.triggers == []


def test_one_port_belongs_to_one_job(world: World) -> None:
    world.put("a")
    other = {"src": "h3", "dst": "h4", "dst_port": 9}
    flow = {"src": "h2", "dst": "h1", "dst_port": 5000}

    def refused(job: str, field: str, said: str, **parts: Any) -> None:
        with pytest.raises(Conflict, match=said) as caught:
            world.put(job, **parts)
        assert caught.value.errors == ((field, str(caught.value)),)

    refused("b", "tasks.0.port", "jobs b and a both claim port 5000 on h1")
    worker = [{"role": "worker", "host": "h2"}, {"role": "ps", "host": "h1", "port": 5000}]
    refused("b", "tasks.1.port", "port 5000 on h1", tasks=worker)
    refused("c", "flows.1", "port 5000 on h1", tasks=[], flows=[other, flow])
    world.registry.delete_job("a", 0.0)
    world.put("c", tasks=[], flows=[flow])
    refused("d", "flows.1", r"jobs d and c both claim the flow h2:\* to h1:5000", tasks=[], flows=[other, flow])
    refused("d", "flows.0", "the flow h2:7 to h1:5000", tasks=[], flows=[flow | {"src_port": 7}])
    world.registry.delete_job("c", 0.0)
    world.put("c", tasks=[], flows=[flow | {"src_port": 7}])
    refused("d", "flows.1", "jobs d and c both claim the flow h2:7 to h1:5000", tasks=[], flows=[other, flow])
    refused("d", "tasks.0.port", "port 5000 on h1")


def test_flows_are_derived_from_tasks(world: World) -> None:
    world.put()
    assert set(world.snapshot().jobs[0].flows) == {
        Flow("a", "h2", "h1", dst_port=5000),
        Flow("a", "h1", "h2", src_port=5000),
    }


def test_demand_says_which_hosts_talk(world: World) -> None:
    ring = [{"role": "peer", "host": f"h{i}", "port": 6000} for i in (1, 2, 3, 4)]
    demand = [{"src": f"h{i}", "dst": f"h{i % 4 + 1}", "bytes": 1.0} for i in (1, 2, 3, 4)]
    world.put(tasks=ring, demand=demand)
    pairs = {frozenset((flow.src, flow.dst)) for flow in world.snapshot().jobs[0].flows}
    assert pairs == {frozenset(p) for p in (("h1", "h2"), ("h2", "h3"), ("h3", "h4"), ("h4", "h1"))}


def test_a_report_is_taken_in_part(world: World) -> None:
    world.put()
    answer = world.tell(jobs=[progress("ghost", (1, 0.1)), progress("a", (1, 0.1))])
    reason = "unknown job on h1; register it first, with a task, flow or demand there"
    assert [(part.job, part.reason) for part in answer.refused] == [("ghost", reason)]
    assert world.snapshot().jobs[0].iterations_done == 1
    with pytest.raises(NotFound):
        world.registry.job_state("ghost")


def test_a_host_reports_only_its_own_jobs(world: World) -> None:
    world.put()
    answer = world.tell("h3", jobs=[progress("a", (1, 0.1), ended=True)])
    assert "unknown job on h3; register it first" in answer.refused[0].reason
    assert world.snapshot().jobs[0].progress == ()
    with pytest.raises(NotFound):
        world.tell("h77")


def test_new_flows_trigger_once_and_not_when_they_are_known(world: World) -> None:
    world.put("a")
    world.put("b", port=7000)
    world.triggers.clear()

    def seen(job: str, **flow: Any) -> dict[str, Any]:
        return {"job": job, "flow": flow}

    assert not world.tell(flows=[seen("a", src="h2", dst="h1", src_port=40000, dst_port=5000)]).refused
    assert world.triggers == []
    fresh = seen("a", src="h1", dst="h2", src_port=40001, dst_port=9000)
    world.tell(flows=[fresh])
    world.tell(flows=[fresh])
    assert world.triggers == ["new flows"]
    assert Flow("a", "h1", "h2", 40001, 9000) in world.snapshot().jobs[0].flows
    stolen = world.tell(flows=[seen("a", src="h2", dst="h1", src_port=1, dst_port=7000)])
    assert "it belongs to job b" in stolen.refused[0].reason
    foreign = world.tell(flows=[seen("a", src="h2", dst="h3", dst_port=1)])
    assert "h1 is no end of it" in foreign.refused[0].reason


def test_plain_progress_waits_for_the_period(world: World) -> None:
    world.put()
    world.triggers.clear()
    world.tell(jobs=[progress("a", (1, 0.1), sent_bytes=5.0)])
    world.tell()
    assert world.triggers == []


def test_a_job_is_counted_once_a_host_tells_its_bytes_were_there_none(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", (1, 0.1))])
    assert not world.snapshot().jobs[0].is_counted
    world.tell(jobs=[{"job": "a", "sent_bytes": 0.0}])
    assert world.snapshot().jobs[0].is_counted


def test_bytes_add_up_over_an_agents_counts(world: World) -> None:
    world.put()

    def sent(**parts: Any) -> None:
        counter = parts.pop("counter", 0)
        count = parts.pop("sent")
        world.tell("h1", jobs=[{"job": "a", "sent_bytes": count, "counter": counter}], **parts)

    sent(sent=4e9)
    sent(sent=10e9)
    sent(sent=10e9)
    # The agent restarts, and its count with it.
    sent(sent=0.0, session="next", seq=1)
    sent(sent=10e9, session="next", seq=3)
    sent(sent=9e9, session="next", seq=2)
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 20e9}
    # The job's marks went and came back.
    sent(sent=1e9, session="next", seq=4, counter=2)
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 21e9}
    for restart in range(100):
        sent(sent=1.0, session=f"s{restart}", seq=1)
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 21e9 + 100}


def test_what_ended_is_forgotten_after_a_while(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", ended=True)])
    world.clock.now += 3601
    world.registry.expire()
    with pytest.raises(NotFound):
        world.registry.job_state("a")


def test_arrivals_in_the_future_are_a_clock_ahead(world: World) -> None:
    world.put(arrival=5000.0)
    assert world.snapshot().jobs[0].arrival == 1000.0


@pytest.mark.parametrize(
    ("total", "done", "left"), [(100.0, 30.0, 70.0), (100.0, 120.0, 0.0), (None, 30.0, 100.0), (None, 400.0, 400.0)]
)
def test_iterations_left(world: World, total: float | None, done: float, left: float) -> None:
    world.put(iterations=total)
    world.tell(jobs=[progress("a", (done, None))])
    assert world.snapshot().jobs[0].iterations_left == left


def test_stages(world: World) -> None:
    world.put("a")
    world.put("b", port=5001, stage="s2")
    world.triggers.clear()
    registry = world.registry
    assert registry.put_stage("s1", StageSpec(jobs=("a",)), 0.0) is Change.CREATED
    assert registry.put_stage("s1", StageSpec(jobs=("a",)), 0.0) is Change.UNCHANGED
    with pytest.raises(Conflict, match="job b is in stage s2 already") as caught:
        registry.put_stage("s1", StageSpec(jobs=("a", "b")), 0.0)
    assert [field for field, _ in caught.value.errors] == ["jobs.1"]
    with pytest.raises(Invalid, match=r"jobs\.0: unknown job"):
        registry.put_stage("s3", StageSpec(jobs=("ghost",)), 0.0)
    assert {stage.id: stage.jobs for stage in world.snapshot().stages} == {"s1": ("a",), "s2": ("b",)}
    registry.delete_stage("s2", 0.0)
    assert [(job.id, job.stage) for job in world.snapshot().jobs] == [("a", "s1"), ("b", None)]
    assert world.triggers == ["stage start", "stage end"]
    with pytest.raises(NotFound):
        registry.delete_stage("s2", 0.0)


def test_one_absurd_number_does_not_end_a_jobs_progress(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.put(iterations=100.0)
    absurd = {"iteration": 9e14, "time": 6.0, "metric": 0.6}
    world.tell(jobs=[{"job": "a", "points": [{"iteration": 5.0, "time": 5.0, "metric": 0.5}, absurd]}])
    answer = world.tell(jobs=[progress("a", (201, 0.7), (6, 0.8))])
    (job,) = world.snapshot().jobs
    assert (job.iterations_left, [point.iteration for point in job.progress]) == (94.0, [5.0, 6.0])
    assert answer.refused == (), "or the agent would tell it again"
    assert [(part.job, part.reason) for part in answer.left_out] == [
        ("a", "1 points are beyond iteration 200, the most that is believed")
    ]
    assert sum("beyond iteration 200" in record.message for record in caplog.records) == 1


def test_nor_where_the_length_of_the_run_is_not_known(world: World) -> None:
    world.put(iterations=None)
    absurd = {"iteration": 1e15, "time": 6.0, "metric": 0.7}
    answer = world.tell(jobs=[{"job": "a", "points": [absurd, {"iteration": 6.0, "time": 6.0, "metric": 0.8}]}])
    assert world.snapshot().jobs[0].iterations_done == 6
    assert "beyond iteration 1e+09" in answer.left_out[0].reason


def test_the_journal_of_a_long_run_does_not_grow_for_ever(tmp_path: Path) -> None:
    store = Store(tmp_path / "journal.sqlite")
    registry = UnpausedRegistry(HOSTS, store, Clock(), lease_seconds=30.0)
    registry.put_job("a", job_spec(iterations=1e6), 0.0)
    for seq in range(1, 41):
        points = [(float(k), k / 1e6) for k in range(seq * 1000, seq * 1000 + 1000)]
        report = {"session": "s", "seq": seq, "sent_at": 1000.0, "jobs": [progress("a", *points)]}
        registry.report("h1", HostReport.model_validate(report), 0.0)
        assert not store.settle(store.write(dequeued(store)))
    store.close()
    assert len(Store(tmp_path / "journal.sqlite").contents().points["a"]) <= MAX_ROWS + 1000


points = st.lists(st.tuples(st.integers(0, 20), st.none() | st.floats(0, 1)), max_size=4)
parts = st.builds(
    lambda told, sent: progress("a", *[(float(k), m) for k, m in told], sent_bytes=sent),
    points,
    st.none() | st.floats(0, 1e9),
)
flows = st.lists(
    st.builds(
        lambda a, b: {"job": "a", "flow": {"src": "h1", "dst": "h2", "src_port": a, "dst_port": b}},
        st.integers(1, 9),
        st.integers(1, 9),
    ),
    max_size=3,
)
batches = st.lists(
    st.tuples(st.sampled_from(["h1", "h2"]), st.lists(parts, max_size=2), flows, st.booleans()), min_size=1, max_size=8
)


@settings(max_examples=60, deadline=None)
@given(batches, st.data())
def test_any_order_and_repetition_of_reports_gives_the_same_state(told: Any, data: st.DataObject) -> None:
    reports = []
    for seq, (host, jobs, seen, ends) in enumerate(told, 1):
        body = {"session": "s", "seq": seq, "sent_at": 1000.0, "jobs": copy.deepcopy(jobs), "flows": seen}
        if ends and jobs:
            body["jobs"][0]["ended"] = True
        reports.append((host, HostReport.model_validate(body)))
    shuffled = data.draw(st.permutations([*reports, *reports]))

    def play(order: Any) -> Any:
        world = World()
        world.put()
        world.put("b", port=5001)
        for host, report in order:
            world.registry.report(host, report, 0.0)
        state = world.registry.job_state("a")
        record = world.registry._jobs.find("a")
        return world.snapshot(), state, record.value()

    assert play(reports) == play(shuffled)


def test_a_duplicate_is_told_so(world: World) -> None:
    world.put()
    assert world.tell(jobs=[progress("a", (1, 0.1))]).status == "taken"
    world.seq -= 1
    assert world.tell(jobs=[progress("a", (9, 0.9))]).status == "duplicate"
    assert world.snapshot().jobs[0].iterations_done == 1
    assert world.tell(session="other", seq=1).status == "taken"
