"""Turns of jobs by user: who is read in one round, and who in the next."""

from __future__ import annotations

from host_reporter.jobs.turns import Turns


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def rounds(jobs: list[str], count: int, *, cost: float = 1.0, seconds: float = 4.0) -> list[list[str]]:
    """Returns who is read in each round; the first letter is the user. Each job costs so many seconds."""
    clock = Clock()
    turns: Turns[str] = Turns(lambda job: job[0], round_seconds=seconds, clock=clock)
    found = []
    for _ in range(count):
        turns.begin()
        found.append([])
        for job in turns.of(jobs):
            found[-1].append(job)
            clock.now += cost
    return found


def test_all_are_read_in_each_round_that_has_time() -> None:
    jobs = ["a1", "a2", "b1", "c1"]
    for read in rounds(jobs, 5, cost=0.1):
        assert sorted(read) == jobs


def test_a_user_with_many_jobs_leaves_a_turn_to_each_other_one() -> None:
    jobs = [f"a{number}" for number in range(100)] + ["b1"]
    for read in rounds(jobs, 40):
        assert len(read) == 4
        assert "b1" in read
    read = [job for each in rounds(jobs, 34) for job in each if job != "b1"]
    assert read[:100] == jobs[:100], "each of the many has its turn, too"


def test_of_more_users_than_a_round_has_time_for_each_is_read_in_turn() -> None:
    jobs = [f"{user}1" for user in "abcdefghij"]
    assert {job for each in rounds(jobs, 3) for job in each} == set(jobs)


def test_one_job_is_read_however_little_time_there_is() -> None:
    assert rounds(["a1", "a2"], 4, seconds=0.0) == [["a1"], ["a2"], ["a1"], ["a2"]]


def test_jobs_that_go_and_come_lose_no_turn() -> None:
    clock = Clock()
    turns: Turns[str] = Turns(lambda job: job[0], round_seconds=1.0, clock=clock)

    def read(*jobs: str) -> list[str]:
        turns.begin()
        found = []
        for job in turns.of(jobs):
            found.append(job)
            clock.now += 1.0
        return found

    assert read("a1", "a2", "a3") == ["a1"]
    assert read("a2", "a3") == ["a2"], "its last job is gone"
    assert read("a2", "a3", "b1") == ["b1"], "a new user is first"
    assert read("a2", "a3", "b1") == ["a3"]
    assert read() == []
