"""The presets of tables and of trees read all kinds of their lines, also those that no recording has."""

from __future__ import annotations

from pathlib import Path

import pytest

from host_reporter.formats import registry
from host_reporter.formats.events import Diverged, Point
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.recognition import Recognition
from tests.support.agent.logs import Parsed, interpreted, parsed


def diverges(found: Parsed) -> bool:
    return any(isinstance(event, Diverged) or (isinstance(event, Point) and event.diverged) for event in found.events)


def table(steps: int, reward: float) -> list[str]:
    rows = ["rollout/         |        ", f"   ep_rew_mean   | {reward:<6} ", f"   total_timesteps | {steps:<6} "]
    return ["-" * 30, *(f"| {row} |" for row in rows), "-" * 30]


def test_stable_baselines3_evaluates() -> None:
    lines = [
        *table(1000, 20.5),
        "Eval num_timesteps=2000, episode_reward=30.00 +/- 1.50",
        "Episode length: 30.00 +/- 1.50",
    ]
    found = interpreted([*lines, *table(3000, 25.5), "Eval num_timesteps=4000, episode_reward=40.00 +/- 1.50"])
    assert (found.preset, found.described.metric) == ("stable-baselines3", "eval/mean_reward")
    assert found.points == [(1000, 20.5), (2000, 30), (3000, None), (4000, 40)]


def test_stable_baselines3_learns_again() -> None:
    run = ["Logging to out", *table(1000, 20.5), *table(2000, 21.5)]
    assert interpreted([*run, *run]).ends == 1
    assert interpreted([*run, "Logging to out", *table(3000, 25.5)]).ends == 0
    assert diverges(interpreted([*run, "|    loss              | nan        |"]))


def test_xgboost_with_several_sets_cross_validation_and_a_second_training() -> None:
    lines = [f"[{i}]\tvalidation_0-logloss:0.6{i}\tvalidation_1-logloss:0.7{i}" for i in range(3)]
    found = interpreted([*lines, *lines])
    assert (found.preset, found.described.metric, found.ends) == ("xgboost", "validation_1-logloss", 1)
    assert found.points == [(1, 0.7), (2, 0.71), (3, 0.72)] * 2
    found = interpreted([f"[{i}]\ttrain-auc:0.5{i}+0.01234\ttest-auc:0.6{i}+0.00211" for i in range(3)])
    assert (found.described.direction, found.points) == ("max", [(1, 0.6), (2, 0.61), (3, 0.62)])
    found = interpreted(["[12:00:01] [0]\ttest-merror:nan"])
    assert (found.preset, diverges(found)) == ("xgboost", True)


def test_lightgbm_s_command_line_and_its_cross_validation() -> None:
    begun = "[LightGBM] [Info] Number of data points in the train set: 7000, number of used features: 28"
    line = "[LightGBM] [Info] Iteration:{}, {} : {}"
    lines = [
        begun,
        *(line.format(i, set_, v) for i in (1, 2) for set_, v in (("training auc", 0.8), ("valid_1 auc", 0.7))),
    ]
    found = interpreted([*lines, *lines])
    assert (found.preset, found.described.metric, found.ends) == ("lightgbm", "valid_1 auc", 1)
    assert found.points == [(1, 0.8), (1, 0.7), (2, None), (2, 0.7), (1, None), (1, 0.7), (2, None), (2, 0.7)]
    found = interpreted([f"[{i}]\tcv_agg's valid binary_logloss: 0.5{i} + 0.012" for i in (10, 20)])
    assert (found.points, found.described.direction) == ([(10, 0.51), (20, 0.52)], "min")
    assert diverges(interpreted(["[1]\tvalid_0's l2: 0.5", "[2]\tvalid_0's l2: nan"]))


def test_tensorflow_estimators_with_absl_s_prefix_and_a_loss_that_is_no_number() -> None:
    prefix = "I0501 12:00:00.123456 139 basic_session_run_hooks.py:260] "
    lines = [f"{prefix}loss = {loss}, step = {step} (0.2 sec)" for step, loss in ((100, 0.5), (200, 0.4))]
    found = interpreted(lines)
    assert (found.preset, found.points) == ("tensorflow-estimator", [(100, 0.5), (200, 0.4)])
    assert diverges(interpreted([*lines, "ERROR:tensorflow:Model diverged with loss = NaN."]))
    begun = "INFO:tensorflow:Saving checkpoints for 0 into model/model.ckpt."
    assert interpreted([*lines, begun, "INFO:tensorflow:loss = 1.5, step = 0"]).ends == 1
    assert interpreted([*lines, "INFO:tensorflow:loss = 0.3, step = 201"]).ends == 0


def test_ray_tune_s_trials_one_after_the_other_are_runs() -> None:
    def trial(name: str) -> list[str]:
        lines = [f"(train pid=7) iteration {i} loss {1 / i:.3f}" for i in (1, 2, 3)]
        table = ["│ training_iteration              3 │", "│ loss                        0.333 │"]
        done = f"Trial {name} completed after 3 iterations at 2024-05-01 12:00:00. Total running time: 9s"
        return [f"Trial {name} started with configuration:", *lines, done, *table]

    best = "Current best trial: 1_00001 with loss=0.1 and params={'lr': 0.3}"
    found = interpreted([*trial("train_1_00000"), *trial("train_1_00001"), best])
    assert (found.preset, found.ends) == ("ray-tune", 1)
    assert found.points == [(1, 1), (2, 0.5), (3, 0.333), (3, 0.333)] * 2


def test_rllib_is_judged_by_its_reward(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    line = '{{"training_iteration": {}, "trial_id": "1", "time_total_s": 1.5, "timestamp": 1714560000, {}}}\n'
    learner = '"info": {"learner": {"total_loss": 0.5}}, "env_runners": {"episode_return_mean": '
    path.write_text("".join(line.format(i, f"{learner}{10 * i}}}}}"[:-1]) for i in (1, 2)))
    found = parsed(path)
    assert (found.described.preset, found.described.metric) == ("ray-tune-json", "env_runners.episode_return_mean")
    assert [(point.iteration, point.metric, point.time) for point in found.runs[0]] == [
        (1, 10, 1714560000),
        (2, 20, 1714560000),
    ]


def rows(*epochs: int, text: str = "{0},{1},{1}") -> str:
    return "".join(text.format(epoch, 0.9 - epoch / 100) + "\n" for epoch in epochs)


KERAS = "epoch,loss,val_loss\n"
LINE = '{{"step": {0}, "loss": {1}}}'


@pytest.mark.parametrize(
    ("name", "text", "runs"),
    [
        ("again.csv", KERAS + rows(0, 1, 2) + rows(0, 1, 2, 3), [3, 4]),
        ("again.csv", KERAS + rows(0, 1, 2) + KERAS + rows(0, 1, 2, 3), [3, 4]),
        ("goes-on.csv", KERAS + rows(0, 1, 2) + KERAS + rows(3, 4), [5]),
        ("again.jsonl", rows(5, 10, 15, text=LINE) + rows(5, 10, text=LINE), [3, 2]),
        ("once.jsonl", rows(5, 5, 10, 15, text=LINE), [4]),
        ("three.csv", KERAS + (rows(0, 1) * 3), [2, 2, 2]),
    ],
)
def test_a_run_that_is_appended_to_the_table_of_the_one_before(
    tmp_path: Path, name: str, text: str, runs: list[int]
) -> None:
    (tmp_path / name).write_text(text)
    found = parsed(tmp_path / name)
    assert [len(run) for run in found.runs] == runs
    assert found.problem is None


def test_catboost_s_metric_counts_where_a_job_file_says_its_direction() -> None:
    line = "{0}:\tlearn: 0.6{0}\ttest: 0.7{0}\tbest: 0.7{0} ({0})\ttotal: 1.02ms\tremaining: 3.06ms"
    lines = ["Learning rate set to 0.5", *(line.format(number) for number in range(3))]
    reader = Interpreter(Recognition(registry.available()), Declared(metric="test", direction="max"))
    assert interpreted(lines, reader).points == [(1, 0.7), (2, 0.71), (3, 0.72)]
    assert interpreted([*lines, *lines]).ends == 1
