"""The presets of files that hold records."""

from __future__ import annotations

import json
import math
from pathlib import Path

from tests.support.agent.logs import parsed


def test_the_reward_of_reinforcement_learning_in_trainer_state(tmp_path: Path) -> None:
    history = [
        {"epoch": step / 100, "loss": 0.0, "reward": step / 10, "reward_std": 0.2, "kl": 0.01, "step": step}
        for step in (10, 20)
    ]
    state = {"epoch": 0.2, "global_step": 20, "max_steps": 100, "log_history": history}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    found = parsed(tmp_path / "trainer_state.json")
    assert (found.described.metric, found.described.direction, found.described.iterations) == ("reward", "max", 100)
    assert [(point.iteration, point.metric) for point in found.runs[0]] == [(10, 1), (20, 2)]


def test_a_loss_that_is_no_number_in_llama_factory_s_file(tmp_path: Path) -> None:
    lines = [
        {"current_steps": step, "total_steps": 30, "loss": loss, "lr": 0.1, "epoch": 0.1, "elapsed_time": "0:00:01"}
        for step, loss in ((5, 4.0), (10, math.nan))
    ]
    (tmp_path / "trainer_log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = parsed(tmp_path / "trainer_log.jsonl")
    assert (found.described.preset, found.described.iterations) == ("llama-factory", 30)
    read = [(point.iteration, point.metric, point.diverged) for point in found.runs[0]]
    assert read == [(5, 4, False), (10, None, True)]


def test_mmcv_s_file_counts_each_epoch_anew(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"env_info": "sys.platform: linux", "seed": 0}]
    for epoch in (1, 2):
        train = {
            "mode": "train",
            "epoch": epoch,
            "lr": 0.01,
            "memory": 9,
            "data_time": 0.1,
            "loss": 3 - epoch,
            "time": 1,
        }
        lines += [{**train, "iter": step} for step in (50, 100)]
        lines.append({"mode": "val", "epoch": epoch, "iter": 500, "lr": 0.01, "bbox_mAP": epoch / 10})
    (tmp_path / "20240501_120000.log.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = parsed(tmp_path / "20240501_120000.log.json")
    assert (found.described.preset, found.described.direction) == ("mmengine-json", "max")
    read = [(point.iteration, point.metric) for point in found.runs[0] if point.metric is not None]
    assert read == [(50, 2), (100, 2), (100, 0.1), (200, 0.2)]
