"""What ``scripts/evaluate real`` measures, and how it adds up. Values only."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation import summary
from evaluation.bench.support.waiting import wait_until
from evaluation.real import claim, lab
from evaluation.real.claim import Group
from evaluation.real.history import History, against, largest_difference, read_history, times
from evaluation.real.job import RankUse, RealJob
from evaluation.real.request import Found, RealArm, RealRequest, RealResult, load
from evaluation.real.workload import (
    FULL,
    ITERATION_SECONDS,
    QUICK,
    generate,
    gradient_bytes,
    iteration_seconds,
    parameters,
    width,
)
from host_reporter.training.progress_file import ProgressFile
from topologies.box.datapath import DatapathError
from topologies.errors import LabError
from topologies.frameworks import PYTHON_SETTING
from topologies.lab import boxed
from topologies.lab.results import ArmResult, Control, JobResult, Point, save
from topologies.lab.use.meters import LinkUse
from topologies.trainer.start import Meeting

JPAS_SPEED = 0.8
CONTROL = Control(10, 0.01, 0.02, 30, 50, 20)


def curve(job: RealJob, seconds: float, until: int | None = None) -> tuple[Point, ...]:
    """Accuracy rises in a line for half of the run, and then stays."""
    points = range(2, (until or job.iterations) + 1, 2)
    return tuple((seconds * i, i, min(0.96, 0.96 * 2 * i / job.iterations)) for i in points)


def result(
    group: Group, *, waited: float | None = 0.1, idle: float = 0.5, cut: tuple[str, str] | None = None
) -> RealResult:
    """Both arms; under JPAS all is faster. ``cut``: a job that the limit stopped in an arm."""
    arms = []
    for choice in group.asked().policies:
        pace = (0.5 + group.seed / 1000) * (JPAS_SPEED if choice.name == "jpas" else 1.0)
        jobs: dict[str, JobResult] = {}
        ranks: list[RankUse] = []
        for job in group.asked().jobs:
            if (choice.name, job.id) == cut:
                history, ended = curve(job, pace, int(0.6 * job.iterations)), None
            else:
                history, ended = curve(job, pace), pace * job.iterations
            jobs[job.id] = times(History(history, ended), done=ended is not None, watched_seconds=500.0)
            spent = pace * job.iterations
            ranks += [
                RankUse(job.id, rank, spent, 0.05 * spent, None if waited is None else waited * spent)
                for rank in range(len(job.hosts))
            ]
        links = tuple(LinkUse(f"h{i + 1}", 0.8, 0.7) for i in range(group.shape.hosts))
        arm = ArmResult(f"real-{group.seed}", group.seed, choice.name, jobs, CONTROL, (1,) * 8, idle, 200.0, links)
        arms.append(RealArm(arm, tuple(ranks), {job: Found(4, 1e6, (0, 1)) for job in jobs}))
    return RealResult("user", group.seed, "2.0", 2, tuple(arms))


def test_a_seed_gives_the_same_jobs_and_others_give_others() -> None:
    assert generate(FULL, 71) == generate(FULL, 71)
    assert generate(FULL, 71) != generate(FULL, 72)
    for seed in claim.SEEDS:
        jobs = generate(FULL, seed)
        assert len({job.id for job in jobs}) == len({job.seed for job in jobs}) == FULL.jobs
        assert jobs[0].arrival == 0
        assert [job.arrival for job in jobs] == sorted(job.arrival for job in jobs)
        assert len({(job.learning_rate, job.width, job.iterations) for job in jobs}) == FULL.jobs
        assert len({job.seed for job in jobs} & {one.seed for one in generate(FULL, seed + 1)}) == 0
        for job in jobs:
            assert len(set(job.hosts)) == len(job.hosts)
            assert FULL.ranks[0] <= len(job.hosts) <= FULL.ranks[1]


@pytest.mark.parametrize("shape", [FULL, QUICK])
def test_an_iteration_keeps_a_link_busy_for_as_long_as_was_wanted(shape) -> None:
    for seed in range(50):
        for job in generate(shape, seed):
            assert 0.95 * ITERATION_SECONDS[0] < iteration_seconds(job) <= ITERATION_SECONDS[1]
            assert gradient_bytes(job) == 4 * parameters(job.model, job.width)


def test_a_width_is_the_largest_that_fits() -> None:
    for model in ("mlp", "cnn"):
        wanted = 4 * parameters(model, 100)
        assert (width(model, wanted), width(model, wanted - 1), width(model, wanted + 1)) == (100, 99, 100)
        assert width(model, 1) == 4


def test_history_is_what_the_callback_wrote(tmp_path: Path) -> None:
    written = ProgressFile("job", tmp_path)
    for iteration in range(1, 5):
        written.report(
            iteration=iteration, metric=iteration / 10 if iteration % 2 == 0 else None, time=100.0 + iteration
        )
    before = time.time()
    written.end()
    after = time.time()
    found = read_history(tmp_path / "job.jsonl", 100.0)
    assert found.points == ((2.0, 2, 0.2), (4.0, 4, 0.4))
    assert found.iterations == 4
    assert before - 101.0 < found.ended < after - 99.0


@pytest.mark.parametrize("line", ["{", "[]", '{"iteration": 3}', '{"time": 1, "iteration": "x"}', '{"time": null}'])
def test_what_no_callback_wrote_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "job.jsonl"
    file.write_text('{"time": 1, "iteration": 1}\n' + line + "\n")
    with pytest.raises(ValueError, match="line 2 is no record"):
        read_history(file, 0.0)


def test_times_are_by_the_own_full_run() -> None:
    job = generate(FULL, 71)[0]
    points = curve(job, 0.5)
    found = times(History(points, 0.5 * job.iterations, job.iterations), done=True, watched_seconds=900)
    # 90 % of 0.96 at 45 % of the run; a median of three is there one report later.
    assert found.t90_seconds == pytest.approx(0.5 * 0.45 * job.iterations, abs=2.1)
    assert (found.censored, found.jct_seconds) == (False, 0.5 * job.iterations)
    stopped = times(History(points[:5], None, 10), done=False, watched_seconds=900)
    assert (stopped.t90_seconds, stopped.censored, stopped.watched_seconds) == (None, True, 900)
    never = times(History((), 5.0, 10), done=True, watched_seconds=900)
    assert never.censored


def test_a_stopped_job_has_its_targets_from_its_full_run_elsewhere() -> None:
    job = generate(FULL, 71)[0]
    full = curve(job, 0.5)
    late = times(History(curve(job, 2.0, int(0.6 * job.iterations)), None), done=False, watched_seconds=900)
    found = against(late, full)
    assert found.t90_seconds == pytest.approx(2.0 * 0.45 * job.iterations, abs=8.1)
    assert (found.jct_seconds, found.censored) == (None, True)
    # One that was cut before the target does not get there because little was seen of it.
    early = times(History(curve(job, 2.0, int(0.2 * job.iterations)), None), done=False, watched_seconds=900)
    assert against(early, full).t90_seconds is None
    assert against(early, ()) == early
    whole = times(History(full, 50.0), done=True, watched_seconds=900)
    assert against(whole, curve(job, 9.0)) == whole


def test_curves_are_compared_by_iteration() -> None:
    assert largest_difference(((1.0, 2, 0.5), (2.0, 4, 0.75)), ((9.0, 2, 0.5), (11.0, 4, 0.5), (12.0, 6, 0.9))) == 0.25
    assert largest_difference((), ()) == 0.0


def test_groups_are_pairs_and_turn_who_goes_first() -> None:
    groups = claim.groups()
    assert len({group.name for group in groups}) == len(groups) == len(claim.SEEDS)
    assert {group.asked().policies[0].name for group in groups} == {"fair", "jpas"}
    for group in groups:
        assert group.arms == 2
        assert {choice.name for choice in group.asked().policies} == {"fair", "jpas"}
    (quick,) = claim.groups(quick=True)
    assert quick.seed not in claim.SEEDS
    assert len(quick.asked().jobs) < FULL.jobs
    # Two arms to their limit, and what comes before: under 5 minutes.
    assert 2 * quick.limit_seconds <= 150


def test_what_is_saved_is_paired_by_seed(tmp_path: Path) -> None:
    fields = claim.add_up([(group, result(group, waited=0.02)) for group in claim.groups()])
    for measure in ("t90", "t95", "jct"):
        found = fields["policies"]["jpas"][measure]
        assert found["reduction"] == pytest.approx(1 - JPAS_SPEED)
        assert found["reduction_ci95"] == pytest.approx([1 - JPAS_SPEED] * 2)
        assert fields["policies"]["fair"][measure]["reduction"] == 0
    assert fields["largest_curve_difference"] == 0
    processors = fields["processors"]
    assert processors["bottleneck_in_arms"] == 0
    assert processors["most_waiting_share"] == pytest.approx(0.02)
    assert processors["computing_share"] == pytest.approx(0.05)
    most = max(sum(len(job.hosts) for job in group.asked().jobs) for group in claim.groups())
    assert processors["most_ranks_a_core"] == most / 2
    said = claim.headline(fields)
    assert [one["metric"] for one in said] == ["mean_t90", "mean_t95", "mean_jct"]
    assert all(one["reduction"] == pytest.approx(1 - JPAS_SPEED) for one in said)
    assert len(list(claim.tables(fields))) == 2
    summary.write(tmp_path / "summary.json", fields)
    measured = json.loads((tmp_path / "summary.json").read_text())["seeds_measured"]
    job = next(iter(measured[0]["jobs"].values()))
    assert job["jpas"]["t90_seconds"] < job["fair"]["t90_seconds"]
    assert job["fair"]["found"]["connections"] == 4


@pytest.mark.parametrize(("waited", "idle"), [(0.2, 0.5), (0.2, 0.05), (None, 0.05)])
def test_nothing_is_quoted_where_the_processors_were_the_bottleneck(waited: float | None, idle: float) -> None:
    good, bad = claim.groups()[:2]
    fields = claim.add_up([(good, result(good, waited=0.0)), (bad, result(bad, waited=waited, idle=idle))])
    assert fields["processors"]["bottleneck_in_arms"] == 2
    assert claim.headline(fields) == []
    assert any("nothing is to be quoted" in str(table.title) for table in claim.tables(fields))


def test_ranks_that_wait_for_no_processor_are_quoted_whatever_else_keeps_processors_busy() -> None:
    group = claim.groups()[0]
    fields = claim.add_up([(group, result(group, waited=0.02, idle=0.05))])
    assert fields["processors"]["least_cpu_idle_share"] == 0.05
    assert claim.headline(fields)


def test_ranks_that_compute_all_the_time_are_a_bottleneck_whatever_else_is_told() -> None:
    group = claim.groups()[0]
    arm = result(group, waited=None).arms[0]
    busy = replace(arm, ranks=tuple(replace(rank, cpu_seconds=200.0) for rank in arm.ranks))
    assert not load(arm, 2).is_bottleneck
    assert load(busy, 2).busy_ranks_a_core == len(arm.ranks) / 2
    assert load(busy, 2).is_bottleneck


def test_a_job_that_was_stopped_is_counted_and_not_dropped() -> None:
    group = claim.groups()[0]
    job = group.asked().jobs[0].id
    fields = claim.add_up([(group, result(group, cut=("fair", job)))])
    assert (fields["policies"]["fair"]["censored"], fields["policies"]["jpas"]["censored"]) == (1, 0)
    measured = fields["seeds_measured"][0]["jobs"][job]["fair"]
    assert measured["jct_seconds"] is None
    assert measured["t90_seconds"] is not None, "the target is that of the other arm's full run"


def test_one_seed_has_no_interval_and_can_be_shown_and_drawn(tmp_path: Path) -> None:
    (group,) = claim.groups(quick=True)
    fields = claim.add_up([(group, result(group, waited=None))])
    claim.plot(fields, tmp_path)
    assert (tmp_path / "real.png").stat().st_size > 5000
    assert list(claim.tables(fields))
    assert claim.headline(fields)[0]["reduction"] == pytest.approx(1 - JPAS_SPEED)
    summary.write(tmp_path / "summary.json", fields)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    (group,) = claim.groups(quick=True)
    made = result(group)
    save(tmp_path / lab.RESULT, made)
    assert group.read(tmp_path) == made


def test_without_pytorch_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PYTHON_SETTING, str(tmp_path / "nothing"))
    with pytest.raises(LabError, match="scripts/setup --frameworks"):
        lab.LAB.run(Group(1).asked(), "auto", tmp_path)


def test_a_box_gets_the_request_and_its_failure_comes_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    request = Group(3).asked()
    asked: list[RealRequest] = []

    def fails(request: RealRequest, _results: Path) -> None:
        asked.append(request)
        raise DatapathError("no switch here")

    def inside(command: list[str], *, memory: str, stop: threading.Event | None) -> int:
        assert (command[1:3], memory, stop) == (["-m", "evaluation.real.lab"], "6G", None)
        monkeypatch.setattr(sys, "argv", command[2:])
        return boxed.main(RealRequest, fails)

    monkeypatch.setattr(boxed.box, "run", inside)
    with pytest.raises(LabError, match="no switch here"):
        boxed.run("evaluation.real.lab", request, tmp_path, memory="6G", stop=None)
    assert asked == [request]
    monkeypatch.setattr(boxed.box, "run", lambda *_, **__: 3)
    with pytest.raises(LabError, match="ended with status 3"):
        boxed.run("evaluation.real.lab", request, tmp_path, memory="6G", stop=None)


def test_who_joins_a_meeting_waits_for_the_start(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path)
    found = []
    thread = threading.Thread(target=lambda: found.append(meeting.join("one")))
    thread.start()
    wait_until(lambda: not meeting.missing(frozenset({"one"})))
    assert not found
    meeting.begin(epoch := time.time() + 5)
    thread.join(10)
    assert found[0].epoch == pytest.approx(epoch, abs=0.001)
    assert found[0].monotonic - time.monotonic() == pytest.approx(epoch - time.time(), abs=0.1)
