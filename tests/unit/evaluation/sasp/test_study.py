"""The study of late gradients: what is tuned and compared, and how it adds up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from evaluation.sasp.emulation.events import EvenlyLate, Event, RecordedLateness, Used, even_events, taken
from evaluation.sasp.emulation.repeating import RepeatedLateness, repeated_events
from evaluation.sasp.study import chosen, plan, report
from evaluation.sasp.study.arms import ARMS, PLAIN_ARMS, Arm
from evaluation.sasp.study.plan import Choice, Setting
from evaluation.sasp.study.record import Record
from evaluation.sasp.study.runs import Goal, Run, Trained, from_line, reached, to_line
from sasp.core.errors import SaspError
from sasp.core.partial import LayerTimes, Times
from sasp.core.scheme import Versions, parse

TIMES = Times(1.0, tuple(LayerTimes(i / 12, 1 - i / 6, 0.25) for i in range(4)), 0.3)
SETTING = Setting("cnn", "sgd", 0.1, 100, {name: arm.leads(TIMES) for name, arm in ARMS.items()}, {})


def trained(rate: float, *metrics: float, seed: int = 1, strength: float = 0.0, arm: str = "late") -> Trained:
    run = plan.run_of(SETTING, arm, Choice(rate, strength), seed)
    return Trained(run, tuple((10 * (i + 1), metric) for i, metric in enumerate(metrics)))


def test_each_arm_has_the_layers_late_that_it_says() -> None:
    assert ARMS["bsp+overlap"].leads(TIMES) == (0, 0, 0, 0)
    assert ARMS["late by 2"].leads(TIMES) == (2, 2, 2, 2)
    partial = ARMS["partial"].leads(TIMES)
    assert partial[0] == 1
    assert sum(partial) < 4


def test_an_arm_goes_over_what_it_can_be_asked_for_there() -> None:
    """The product's own refusals say the same."""
    for arm in ARMS.values():
        late = replace(arm.late, delay_compensation=arm.strengths[-1])
        for transport, check in (("server", late.check_server), ("ranks", late.check_all_reduce)):
            if transport in arm.transports:
                check()
            elif transport == "server" and not arm.halves:
                with pytest.raises(SaspError):
                    check()
    assert ARMS["halves"].transports == ARMS["late, momentum, gap"].transports == ("ranks",)
    assert ARMS["asp+overlap"].transports == ("server",)
    assert len({arm.folder for arm in ARMS.values()}) == len(ARMS)
    assert ARMS["partial, momentum"].folder == "partial-momentum"


def test_an_iteration_is_the_shorter_the_less_it_waits_for() -> None:
    seconds = {name: arm.seconds(TIMES) for name, arm in ARMS.items()}
    assert seconds["late"] == pytest.approx(1.0)
    assert seconds["late"] <= seconds["partial"] <= 1.02 * seconds["late"]
    assert seconds["partial"] < Arm("", parse("bsp+sasp")).seconds(TIMES) < seconds["bsp+overlap"]
    assert seconds["bsp+overlap"] < Arm("", parse("bsp")).seconds(TIMES)


class Trainer:
    """Trainings whose metric is 0 before, and 1 after, ``taken`` iterations at a rate, a strength and a seed."""

    def __init__(self, taken: Callable[[float, float, int], float]) -> None:
        self.asked: list[tuple[Run, Goal]] = []
        self.iterations = 0
        self._taken = taken

    def train(self, run: Run, goal: Goal) -> Trained:
        self.asked.append((run, goal))
        taken, points = self._taken(run.rate, run.strength, run.seed), list[tuple[int, float]]()
        while not goal.is_met(points):
            at = (len(points) + 1) * 10
            points.append((at, float(at >= taken - 10)))
        self.iterations += points[-1][0]
        return Trained(run, tuple(points))


def bowl(best: float) -> Callable[[float, float, int], float]:
    """So many iterations are needed: the fewest at the rate ``best``."""
    return lambda rate, _strength, seed: 30 * math.exp(abs(math.log(rate / best))) + 10 * (seed % 2)


def test_a_race_chooses_what_all_runs_to_their_end_would_choose_and_takes_less() -> None:
    for best in (0.02, 0.1, 0.15):
        racing = Trainer(bowl(best))
        choices = [Choice(0.1 * 10 ** (step / 4), 0.0) for step in (0, -1, 1, -2, 2, -3, -4)]
        winner = plan.fastest(SETTING, "late", choices, 0.5, racing.train)
        whole = {choice: sum(bowl(best)(*choice, seed) for seed in plan.TUNING_SEEDS) for choice in choices}
        assert winner == min(choices, key=lambda choice: whole[choice])
        assert racing.iterations < 0.5 * len(choices) * len(plan.TUNING_SEEDS) * SETTING.iterations


def test_the_order_of_a_race_does_not_matter() -> None:
    choices = [Choice(0.1 * 10 ** (step / 8), 0.0) for step in range(-8, 5)]
    winners = {
        plan.fastest(SETTING, "late", order, 0.5, Trainer(bowl(0.06)).train) for order in (choices, choices[::-1])
    }
    assert len(winners) == 1


def test_the_grid_grows_where_its_edge_is_the_best() -> None:
    for best, step in ((0.1 * 10**-1.5, -6), (0.1, 0), (0.1 * 10**0.75, 3)):
        choice = plan.tuned(SETTING, ARMS["late"], 0.5, Trainer(bowl(best)).train)
        assert choice.rate == pytest.approx(0.1 * 10 ** (step / 4))
    # What teaches nothing ends too.
    plan.tuned(SETTING, ARMS["late"], 0.5, Trainer(lambda *_: math.inf).train)


def test_all_arms_have_the_same_seeds_and_number_of_choices() -> None:
    asked = {}
    for arm in ARMS.values():
        trainer = Trainer(lambda *_: 20)
        plan.tuned(SETTING, arm, 0.5, trainer.train)
        assert {run.seed for run, _ in trainer.asked} == set(plan.TUNING_SEEDS)
        asked[arm.name] = len({(run.rate, run.strength) for run, _ in trainer.asked})
    assert len(set(asked.values())) == 1
    assert not set(plan.TUNING_SEEDS) & set(plan.TEST_SEEDS)


def test_the_strength_is_tuned_where_there_is_one() -> None:
    trainer = Trainer(lambda rate, strength, _seed: 20 if strength == 30 else 40)
    choice = plan.tuned(SETTING, ARMS["late, delay compensation"], 0.5, trainer.train)
    assert choice.strength == 30


def test_the_target_is_a_share_of_the_gain_at_the_best_rate() -> None:
    def train(run: Run, goal: Goal) -> Trained:
        assert goal == Goal(SETTING.iterations), "its best may come last"
        best = 0.9 if run.rate == pytest.approx(0.1) else 0.6
        return Trained(run, tuple((10 * i, metric) for i, metric in enumerate((0.5, best, best, best), 1)))

    assert plan.target_of(SETTING, train) == pytest.approx(0.5 + 0.9 * 0.4)


def test_some_runs_go_to_their_end_and_all_may_end_there() -> None:
    compared = plan.comparison(SETTING, "late", Choice(0.1, 0.0), 0.5)
    assert [run.seed for run, _ in compared] == list(plan.TEST_SEEDS)
    assert [goal.target for _, goal in compared] == [None] * 4 + [0.5] * 4
    assert {goal.iterations for _, goal in compared} == {SETTING.iterations}


def test_a_run_that_never_has_the_target_takes_twice_its_length() -> None:
    fast, never = trained(0.2, 0, 1, 1, 1, 1), trained(0.4, 0, 0, 0, float("nan"))
    assert plan.taken_by(fast, 0.9) == 30
    assert plan.taken_by(never, 0.9) == 200
    assert plan.is_over(fast, 0.9)
    assert plan.is_over(never, 0.9), "what is no number any more stays none"
    assert not plan.is_over(trained(0.2, 0, 0, 0), 0.9)


def test_one_look_above_the_target_is_not_enough() -> None:
    assert reached([(10, 0.0), (20, 1.0), (30, 0.0), (40, 1.0), (50, 1.0)], 0.5) == 40
    assert reached([(10, 1.0), (20, 1.0)], 0.5) is None


def test_times_are_compared_with_the_best_plain_arm() -> None:
    rows = [
        report.row([trained(0.1, 0, 1, 1, 1, arm=arm), trained(0.1, *[1] * 10, arm=arm, seed=2)], 0.5, seconds)
        for arm, seconds in (("bsp+overlap", 2.0), ("ssp:2+overlap", 1.5), ("late", 1.2))
    ]
    shares = {arm: saved.share for arm, saved in report.saved_over_tasks(rows, PLAIN_ARMS).items()}
    assert shares == pytest.approx({"bsp+overlap": 1 - 2 / 1.5, "ssp:2+overlap": 0, "late": 0.2})
    line = report.lines(rows, PLAIN_ARMS)[-1]
    assert "20%" in line
    assert "+25%" in line, "so many more iterations a second"
    assert [row.last for row in rows] == [1, 1, 1], "of the run that went to its end"
    assert math.isnan(report.row([trained(0.1, 0, 1, 1, 1)], 0.5, 1.0).last)


def of_seeds(arm: str, seconds: float, *taken: float, task: str = "cnn") -> report.Row:
    return report.Row(task, arm, 0.1, 0.0, dict(enumerate(taken)), seconds, 1.0, ())


def test_intervals_are_paired_over_seeds() -> None:
    """Seeds differ much, and the arm takes the same share of each: the interval has no width."""
    plain, late = of_seeds("bsp+overlap", 2.0, 100, 300, 900), of_seeds("late", 1.0, 120, 360, 1080)
    found = report.saved(plain, late)
    assert found.share == pytest.approx(0.4)
    assert found.interval == pytest.approx((0.4, 0.4))
    noisy = report.saved(plain, of_seeds("late", 1.0, 240, 360, 1000))
    assert noisy.interval[0] < noisy.share < noisy.interval[1]
    # Only what both were trained on is compared.
    assert report.saved(plain, late._replace(taken={1: 360.0})).share == pytest.approx(0.4)
    assert report.shown(report.saved(plain, late._replace(taken={1: 360.0})).interval) == ""


def test_the_claim_takes_what_was_best_on_the_tuning_seeds() -> None:
    rows = [
        row
        for task, asp in (("cnn", 1.0), ("mlp", 3.0))
        for row in (
            of_seeds("bsp+overlap", 2.0, 100, 120, task=task), of_seeds("ssp:2+overlap", 2.0, 300, 300, task=task),
            of_seeds("asp+overlap", asp, 150, 150, task=task), of_seeds("partial", 1.5, 110, 120, task=task),
            of_seeds("partial, momentum", 1.4, 100, 110, task=task), of_seeds("late, local", 0.5, 100, 110, task=task),
            of_seeds("partial, local", 1.3, 100, 110, task=task),
        )
    ]  # fmt: skip
    assert chosen.default_of(rows, "ranks") == "partial, local", "with all layers late it would be faster"
    slower = [row._replace(iteration_seconds=1.5) if row.arm == "partial, local" else row for row in rows]
    assert chosen.default_of(slower, "server") == "partial, momentum"
    compared = [rows[0]._replace(ends=(0.9, 0.7), taken={101: 200.0})]
    arms = chosen.arms_of(rows, compared, "cnn")
    assert arms["bsp+overlap"] == {
        "rate": 0.1, "strength": 0.0, "iterations": 110.0, "iteration_seconds": 2.0,
        "compared": {"iterations": 200.0, "last": pytest.approx(0.8)},
    }  # fmt: skip
    assert arms["partial"]["compared"] is None


def test_each_task_counts_alike() -> None:
    rows = [
        of_seeds("bsp+overlap", 1.0, 1000, 3000), of_seeds("late", 1.0, 500, 1500),
        of_seeds("bsp+overlap", 1.0, 10, 10, task="mlp"), of_seeds("late", 1.0, 10, 10, task="mlp"),
        of_seeds("late, gap", 1.0, 10, 10, task="mlp"),
    ]  # fmt: skip
    found = report.saved_over_tasks(rows, PLAIN_ARMS)
    assert found["late"].share == pytest.approx(0.25)
    assert found["late"].interval[0] <= 0.25 <= found["late"].interval[1]
    assert "late, gap" not in found, "it was not trained in each task"
    assert report.best_of(rows, "transformer", PLAIN_ARMS) is None


def test_a_study_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    short, long = trained(0.1, 0.5, 0.6), trained(0.1, 0.5, 0.6, 0.7, 0.8)
    record = Record(path)
    assert record.get(short.run, Goal(20)) is None
    record.keep(short)
    with path.open("a") as file:
        file.write('{"run": {"task"')
    record = Record(path)
    assert record.get(short.run, Goal(20)) == short
    assert record.get(short.run, Goal(40)) is None, "it was not trained so far"
    record.keep(long)
    for known in (record, Record(path)):
        assert known.get(short.run, Goal(40)) == known.get(short.run, Goal(20)) == long
    path.write_text("{}\n")
    with pytest.raises(ValueError, match=r"record\.jsonl:1: no run of the study"):
        Record(path)


def test_a_training_may_end_at_its_goal() -> None:
    points = trained(0.1, 0.5, 0.6, 0.7, 0.8).points
    assert not Goal(20).is_met([])
    assert Goal(40).is_met(points)
    assert not Goal(50).is_met(points)
    assert Goal(50, 0.6).is_met(points)
    assert not Goal(50, 0.75).is_met(points), "one look is not enough"
    assert Goal(50).is_met([(10, float("nan"))])


def test_a_run_is_read_back_as_it_was_written() -> None:
    one = trained(0.1, 0.5, 0.75)
    assert from_line(to_line(one)) == one


def test_every_other_worker_comes_in_between_without_a_barrier() -> None:
    def short(scheme: str) -> list[tuple[str, int, int]]:
        return [(e.kind, e.worker, e.iteration) for e in even_events(parse(scheme), 2, 1, range(1, 3))]

    assert short("bsp")[:4] == [("push", 0, 1), ("push", 1, 1), ("send", 0, 1), ("send", 1, 1)]
    assert short("asp")[:4] == [("push", 0, 1), ("send", 0, 1), ("push", 1, 1), ("send", 1, 1)]
    assert next(even_events(parse("asp"), 2, 3, range(5, 6))) == Event("push", 0, 0, 5)
    assert [EvenlyLate((0, 2)).newest(0, iteration, 1, 0) for iteration in (1, 2, 3, 9)] == [0, 0, 0, 6]


@pytest.mark.parametrize("scheme", ["bsp+sasp", "bsp+sasp:1", "ssp:2+overlap", "asp", "asp+sasp:2"])
def test_a_short_recording_becomes_a_long_job_that_the_server_allows(scheme: str) -> None:
    """Worker 1 is slower. The server's own rules check each push; every iteration is pushed and answered once."""
    known = parse(scheme)
    at = {"bsp": lambda event: event.iteration, "ssp": lambda event: event.iteration * (1 + 0.01 * event.worker)}
    pace = at.get(known.name, lambda event: event.iteration * (1 + 0.25 * event.worker))
    short = [
        event._replace(at=pace(event) + 0.1 * (event.kind == "send") + 0.01 * event.chunk)
        for event in even_events(known, 2, 2, range(1, 9))
    ]
    short.sort(key=lambda event: event.at)
    long = list(repeated_events(short, known, first=3, last=6, iterations=20))
    books = Versions(2, 2, known)
    for event in long:
        if event.kind == "push":
            books.push(event.worker, event.chunk, event.iteration)
    for kind in ("push", "send"):
        assert sorted(e[1:4] for e in long if e.kind == kind) == [
            (worker, chunk, iteration) for worker in range(2) for chunk in range(2) for iteration in range(1, 21)
        ]
    used = [Used(0, i, 0, 0, i - 2) for i in range(2, 9)]
    late = RepeatedLateness(used, 3, 6)
    assert [late.newest(0, i, 0, 0) for i in range(2, 21)] == list(range(19))


def test_what_is_late_repeats_as_if_it_were_written_out() -> None:
    """What a chunk's parameters lacked; where nothing came in a while, the last of the while before it holds."""
    first, last = 3, 7
    for seed in range(50):
        draw = Random(seed)
        used = [Used(0, i, 0, 0, i - draw.randint(1, 3)) for i in range(1, 9) if draw.random() < 0.4]
        long = [one for one in used if one.iteration < last] + [
            Used(0, one.iteration + later, 0, 0, one.version + later)
            for one in used
            if first <= one.iteration < last
            for later in range(last - first, 60, last - first)
        ]
        asked = [(iteration, 0, 0) for iteration in range(1, 40)] + [(5, 1, 0), (5, 0, 8)]
        repeated, written_out = RepeatedLateness(used, first, last), RecordedLateness(long)
        assert [repeated.newest(0, *one) for one in asked] == [written_out.newest(0, *one) for one in asked]


def test_answers_of_two_repetitions_keep_their_order() -> None:
    """The last answers of the part that repeats were slower than its first, and would come after those."""
    scheme = parse("bsp+sasp:2")
    short = [
        event._replace(at=event.iteration + (event.kind == "send") * (0.1 if event.iteration < 5 else 1.5))
        for event in even_events(scheme, 2, 1, range(1, 9))
    ]
    short.sort(key=lambda event: event.at)
    long = list(repeated_events(short, scheme, first=3, last=6, iterations=20))
    for worker in range(2):
        assert [e.iteration for e in long if (e.kind, e.worker) == ("send", worker)] == list(range(1, 21))


@pytest.mark.parametrize(
    ("answers", "at_least", "wanted", "expected"),
    [
        ((4, 5, 6), 4, 5, 5),
        ((4,), 3, 5, 4),
        ((), 3, 5, 3),
        ((2, 3), 3, 3, 3),
        # Where a recording repeats, the server has sent a newer version instead.
        ((6, 7), 5, 5, 6),
        ((4, 6, 7), 5, 5, 6),
        ((), 5, 5, 3),
    ],
)
def test_a_worker_takes_what_it_used_and_never_less_than_it_needs(
    answers: tuple[int, ...], at_least: int, wanted: int, expected: int
) -> None:
    assert taken(answers, 3, at_least, wanted) == expected


def test_a_recording_that_is_too_short_is_said() -> None:
    short = list(even_events(parse("asp"), 1, 1, range(1, 4)))
    with pytest.raises(SaspError, match="worker 0 has no iteration 7 in this recording"):
        repeated_events(short, parse("asp"), first=2, last=7, iterations=20)
    with pytest.raises(SaspError, match="the recording lacks what Event"):
        list(repeated_events(short[1:], parse("asp"), first=2, last=3, iterations=6))


def test_what_was_recorded_is_what_is_late() -> None:
    used = [Used(0, 3, 1, 0, 1), Used(0, 2, 1, 0, 0), Used(0, 3, 1, 0, 2), Used(0, 5, 1, 0, 4), Used(1, 2, 1, 0, 1)]
    recorded = RecordedLateness(used)
    assert [recorded.newest(0, iteration, 1, 0) for iteration in (1, 2, 3, 4, 5)] == [0, 0, 2, 2, 4]
    assert recorded.newest(1, 9, 1, 0) == 1
    assert recorded.newest(1, 9, 1, 64) == 0
