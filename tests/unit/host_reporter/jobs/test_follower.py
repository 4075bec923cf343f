"""The agent's main loop on real files: what is handed on, in which order, and how soon."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.follower import Timing
from host_reporter.readers.points import MAX_PENDING
from host_reporter.readers.tail import READ_BYTES, Tail
from host_reporter.readers.waker import Waker
from tests.support.agent.followed_jobs import PATTERN, World


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """A world whose follower has the options that ``follows_with`` gives."""
    built = World(tmp_path, **getattr(request, "param", {}))
    yield built
    built.stop()


def follows_with(**options: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("world", [options], indirect=True, ids=[""])


def test_a_job_from_its_file_to_its_end(world: World) -> None:
    world.start()
    world.train(1, 2)
    file = world.job()
    wait_until(lambda: world.receiver.points("a") == [1, 2])
    world.train(3)
    wait_until(lambda: world.receiver.points("a") == [1, 2, 3])
    world.train(4)
    file.unlink()
    wait_until(lambda: "end" in world.receiver.order("a"))
    assert world.receiver.points("a") == [1, 2, 3, 4], "what was there when the file went is still told"
    assert world.receiver.order("a")[0] == "declare"
    assert world.receiver.order("a")[-1] == "end"


@follows_with(timing=Timing(look=3600.0))
def test_a_line_is_handed_on_at_once(world: World) -> None:
    world.log.touch()
    world.job()
    world.start()
    wait_until(lambda: world.receiver.calls)
    for step in range(8):
        world.train(step)
        wait_until(
            lambda step=step: world.receiver.points("a")[-1:] == [step],
            what="a change wakes it, and it waits for no look",
        )


def test_the_agents_stop_ends_no_job_but_tells_what_is_there(world: World) -> None:
    world.job()
    world.start()
    wait_until(lambda: world.receiver.calls)
    world.train(1)
    world.stop()
    assert world.receiver.points("a") == [1]
    assert "end" not in world.receiver.order("a")


def test_an_end_record_ends_the_run_and_a_point_after_it_begins_the_next(world: World) -> None:
    progress = world.path / "a.jsonl"
    progress.write_text('{"iteration": 1}\n')
    world.job(progress=None)
    world.start()
    wait_until(lambda: world.receiver.points("a") == [1])
    with progress.open("a") as file:
        file.write('{"iteration": 2}\n{"ended": true}\n')
    wait_until(lambda: world.receiver.order("a")[-1] == "end")
    with progress.open("a") as file:
        file.write('{"iteration": 1}\n')
    wait_until(lambda: world.receiver.order("a")[-1] == "add")
    assert [what for what in world.receiver.order("a") if what != "add"] == ["declare", "end", "declare"]


def test_a_run_that_was_over_before_the_agent_came_is_not_begun_again(world: World) -> None:
    over, again = world.path / "over.jsonl", world.path / "again.jsonl"
    over.write_text('{"iteration": 1}\n{"ended": true}\n')
    again.write_text('{"iteration": 9}\n{"ended": true}\n{"iteration": 1}\n')
    world.job("over", progress=None)
    world.job("again", progress=None)
    world.start()
    wait_until(lambda: world.receiver.points("again") == [1])
    assert world.receiver.order("again") == ["declare", "add"]
    assert world.receiver.order("over") == []


@follows_with(timing=Timing(look=0.1))
def test_what_an_agent_before_began_and_is_over_is_ended(world: World, caplog: pytest.LogCaptureFixture) -> None:
    lines = '{"iteration": 1, "time": 1000.5}\n{"iteration": 2, "time": 2000.5}\n{"ended": true}\n'
    for job, text in (("over", lines), ("silent", '{"ended": true}\n'), ("goes on", lines + '{"iteration": 1}\n')):
        (world.path / f"{job}.jsonl".replace(" ", "-")).write_text(text)
        world.job(job.replace(" ", "-"), progress=None)
    os.utime(world.path / "over.jsonl", (3000.5, 3000.5))
    os.utime(world.path / "silent.jsonl", (1000.5, 1000.5))
    (world.path / "not-ours.jsonl").write_text(lines)
    world.job("not-ours", progress=None)
    half = world.jobs / "half.json"
    half.write_text('{"id": ')
    world.start()
    wait_until(lambda: world.receiver.points("goes-on") == [1])
    world.follower.hold(("over", "silent", "goes-on", "gone", "half"))
    wait_until(lambda: world.receiver.order("silent") == world.receiver.order("over") == ["end earlier"])
    ends = {job: detail for what, job, detail in world.receiver.calls if what == "end earlier"}
    assert ends == {"over": 3000.5, "silent": 1000.5}, "when it was told, and not when we came"
    time.sleep(0.5)
    assert world.receiver.order("gone") == [], "the file that is not understood may be its own"
    messages = [record.message for record in caplog.records if "no job file here is known of" in record.message]
    assert messages == ["no job file here is known of gone, half: ended when all files here are understood"]
    half.write_text('{"id": "half"}')
    wait_until(lambda: world.receiver.order("gone") == ["end earlier"])
    assert world.receiver.order("over") == ["end earlier"]
    assert world.receiver.order("goes-on") == ["declare", "add"]
    assert world.receiver.order("half") == ["declare"]
    assert world.receiver.order("not-ours") == []


def test_a_changed_spec_is_declared_again_without_an_end(world: World) -> None:
    world.train(1)
    world.job()
    world.start()
    wait_until(lambda: world.receiver.points("a") == [1])
    world.job(spec={"weight": 5.0})
    wait_until(lambda: ("declare", "a", 5.0) in world.receiver.calls)
    world.train(2)
    wait_until(lambda: world.receiver.points("a") == [1, 2], what="and its log is not read anew")
    assert "end" not in world.receiver.order("a")


def test_another_spec_in_the_same_edit_as_another_log_is_declared(world: World) -> None:
    world.train(1)
    world.job()
    world.start()
    wait_until(lambda: world.receiver.points("a") == [1])
    world.log = world.path / "elsewhere.log"
    world.job(spec={"weight": 5.0})
    wait_until(lambda: ("declare", "a", 5.0) in world.receiver.calls)
    world.train(2)
    wait_until(lambda: world.receiver.points("a") == [1, 2])
    assert "end" not in world.receiver.order("a")


def test_a_log_that_moves_is_followed_to_its_new_place(world: World) -> None:
    world.train(1)
    world.job()
    world.start()
    wait_until(lambda: world.receiver.points("a") == [1])
    world.log = world.path / "elsewhere.log"
    world.train(2)
    world.job()
    wait_until(lambda: world.receiver.points("a") == [1, 2])
    assert "end" not in world.receiver.order("a")


@pytest.mark.parametrize("how", ["rename", "copytruncate"])
def test_rotation_loses_nothing(world: World, how: str) -> None:
    world.train(1, 2, 3)
    world.job()
    world.start()
    wait_until(lambda: world.receiver.points("a") == [1, 2, 3])
    if how == "rename":
        world.train(4)
        world.log.rename(world.log.with_suffix(".1"))
    else:
        os.truncate(world.log, 0)
    world.train(5, 6)
    wait_until(lambda: world.receiver.points("a")[-2:] == [5, 6])
    assert world.receiver.points("a") == ([1, 2, 3, 4, 5, 6] if how == "rename" else [1, 2, 3, 5, 6])


def test_half_a_line_of_the_old_file_is_not_joined_to_the_new_one(world: World) -> None:
    world.train(1)
    with world.log.open("a") as log:
        log.write("step 2")
    world.job()
    world.start()
    wait_until(lambda: world.receiver.points("a") == [1])
    world.log.rename(world.log.with_suffix(".1"))
    world.log.write_text(" acc 0.9\nstep 3 acc 0.5\n")
    wait_until(lambda: world.receiver.points("a")[-1:] == [3])
    assert world.receiver.points("a") == [1, 3]


@follows_with(timing=Timing(look=0.05, absent=0.0))
def test_a_log_of_which_nothing_matches_is_said_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.log.write_text("nothing\n" * 150)
    world.job()
    world.start()

    def messages() -> list[str]:
        return [record.message for record in caplog.records if "matches the job's pattern" in record.message]

    wait_until(messages)
    for _ in range(5):
        with world.log.open("a") as log:
            log.write("still nothing\n")
        time.sleep(0.06)
    assert len(messages()) == 1
    world.train(1)
    wait_until(lambda: world.receiver.points("a") == [1])


@follows_with(timing=Timing(look=0.05, absent=0.0))
def test_a_log_that_is_not_there_is_said_and_waited_for(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.job()
    world.start()
    wait_until(lambda: any("not there yet" in record.message for record in caplog.records))
    world.train(1)
    wait_until(lambda: world.receiver.points("a") == [1])


def test_a_long_log_is_declared_first_read_in_turns_and_told_thinned(world: World) -> None:
    steps = 60_000
    world.train(*range(steps))
    assert world.log.stat().st_size > 3 * READ_BYTES
    world.job()
    world.log = world.path / "short.log"
    world.train(7)
    world.job("b")
    world.start()
    wait_until(lambda: steps - 1 in world.receiver.points("a"))
    calls = [(what, job) for what, job, _ in world.receiver.calls]
    assert calls[0] == ("declare", "a")
    assert calls.index(("add", "b")) < calls.index(("add", "a")), "the other job does not wait for it"
    assert len(world.receiver.points("a")) <= MAX_PENDING


@follows_with(timing=Timing(last_look=0.1))
def test_a_log_that_grows_as_fast_as_it_is_read_stops_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its own end, nor other jobs, nor the agent's stop."""
    line = b"step 1 acc 0.5\n"
    monkeypatch.setattr(Tail, "_read", _endless(Tail._read, line * 64))
    world.log.write_bytes(line)
    files = [world.job("a"), world.job("b")]
    world.start()
    wait_until(lambda: len(world.receiver.points("a")) > 500 < len(world.receiver.points("b")))
    files[0].unlink()
    wait_until(lambda: world.receiver.order("a")[-1] == "end")
    world.stop()


def _endless(read: Callable[[Tail], bytes], more: bytes) -> Callable[[Tail], bytes]:
    """A reading that finds new lines every time."""

    def changed(tail: Tail) -> bytes:
        return read(tail) or more

    return changed


@pytest.mark.parametrize(
    "world",
    [{}, {"timing": Timing(round=0.0)}],
    indirect=True,
    ids=["read at once", "the round's time is used by other files"],
)
def test_a_long_file_of_a_run_that_is_over_is_not_begun_again(world: World) -> None:
    lines = "".join(f'{{"iteration": {i}}}\n' for i in range(40_000))
    assert len(lines) > 2 * READ_BYTES
    (world.path / "over.jsonl").write_text(lines + '{"ended": true}\n')
    (world.path / "again.jsonl").write_text(lines + '{"ended": true}\n' + '{"iteration": 5}\n')
    world.job("over", progress=None)
    world.job("again", progress=None)
    world.start()
    wait_until(lambda: world.receiver.points("again") == [5])
    world.stop()
    assert world.receiver.order("again") == ["declare", "add"]
    assert world.receiver.order("over") == []


def test_one_absurd_number_is_left_out_and_said_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.job(spec={"iterations": 100})
    world.start()
    for step in (5, 900_000_000_000_000, 901, 6):
        world.train(step)
    wait_until(lambda: world.receiver.points("a") == [5, 6])
    assert sum("is not believed" in record.message for record in caplog.records) == 1


@follows_with(wall=lambda: time.time() - 1000.0 - 10.0 * (time.monotonic() % 100))
def test_the_walls_clock_delays_no_end(world: World) -> None:
    file = world.job()
    world.start()
    wait_until(lambda: world.receiver.calls)
    file.unlink()
    wait_until(lambda: world.receiver.order("a")[-1] == "end")


def _watches() -> int:
    """Watches of all of this process's inotify descriptors."""
    count = 0
    for info in Path("/proc/self/fdinfo").iterdir():
        try:
            count += sum(line.startswith("inotify") for line in info.read_text().splitlines())
        except OSError:
            continue
    return count


def test_watches_are_given_back(world: World) -> None:
    world.start()
    wait_until(lambda: _watches() == 1)
    logs = []
    for n in range(5):
        world.log = world.path / f"{n}.log"
        world.train(1)
        logs.append(world.job(f"j{n}"))
    wait_until(lambda: _watches() == 6)
    for file in logs:
        file.unlink()
    wait_until(lambda: _watches() == 1)


def test_what_is_at_a_path_now_is_watched_and_no_longer_what_was(tmp_path: Path) -> None:
    waker = Waker()
    path = tmp_path / "log"
    path.touch()
    waker.watch_file(path)
    path.rename(tmp_path / "old")
    path.touch()
    waker.watch_file(path)
    before = _watches()
    while waker.wait(0.0):
        pass  # the kernel says that a watch was given back
    with (tmp_path / "old").open("a") as old:
        old.write("x")
    assert not waker.wait(0.02)
    with path.open("a") as new:
        new.write("x")
    assert waker.wait(5)
    waker.forget(path)
    assert _watches() == before - 1
    waker.wake()
    assert waker.wait(5)
    assert not waker.wait(0.0)
    waker.close()
    waker.wake()


def test_many_long_logs_of_one_user_delay_another_user_by_little(world: World) -> None:
    world.log.write_text("".join(f"step {step} acc 0.5\n" for step in range(20_000)))
    for number in range(20):
        world.job(f"many{number}", spec={"user": "alice"})
    (world.path / "one.log").touch()
    world.job("one", spec={"user": "bob"}, progress={"log": str(world.path / "one.log"), "pattern": PATTERN})
    world.start()
    wait_until(lambda: world.receiver.order("one"), 30)
    before = len(world.receiver.calls)
    (world.path / "one.log").write_text("step 7 acc 0.5\n")
    wait_until(lambda: world.receiver.points("one") == [7], 30)
    until = world.receiver.calls.index(("add", "one", [7]))
    read = [job for what, job, told in world.receiver.calls[before:until] if what == "add" and 19_999 in told]  # type: ignore[operator]
    assert len(read) < 10, "it did not wait for all others"
