"""The presets of programs that train language models read all kinds of their lines."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from host_reporter.formats.events import Diverged, Ended, Point
from tests.support.agent.logs import SAMPLES, Parsed, interpreted


def read(*lines: str) -> Parsed:
    return interpreted(lines)


def recognised(preset: str, *lines: str) -> list[tuple[float, float | None]]:
    """Returns the points of lines that prove the preset."""
    found = read(*lines)
    assert (found.preset, found.is_guess) == (preset, False)
    return found.points


def has_diverged(found: Parsed) -> bool:
    return any(isinstance(e, Diverged) or (isinstance(e, Point) and e.diverged) for e in found.events)


MEGATRON = (
    " [2024-05-01 12:00:00] iteration {:8d}/  500000 | consumed samples:        25600 | elapsed time per "
    "iteration (ms): 613.2 | learning rate: 1.500000E-06 | global batch size:   256 |{} loss scale: 1.0 | "
    "grad norm: {} | number of skipped iterations: {:3d} | number of nan iterations: {:3d} |"
)


def megatron(
    iteration: int, loss: str = " lm loss: 9.5E+00 |", norm: str = "3.201", skipped: int = 0, nan: int = 0
) -> str:
    return MEGATRON.format(iteration, loss, norm, skipped, nan)


def test_megatron_leaves_a_loss_out_that_is_no_number() -> None:
    assert has_diverged(read(megatron(100), megatron(200, loss="", norm="nan")))
    # An overflow of mixed precision skips the step, and training goes on.
    assert not has_diverged(read(megatron(100), megatron(101, loss="", norm="nan", skipped=1, nan=0)))


def test_megatron_s_test_is_no_validation_and_older_versions_write_no_colon() -> None:
    lines = (
        " validation loss at iteration 200 on validation set | lm loss value: 8.2E+00 | lm loss PPL: 3.6E+03 | ",
        " validation loss at iteration 200 on test set | lm loss value: 7.1E+00 | lm loss PPL: 1.2E+03 | ",
    )
    assert recognised("megatron-lm", *lines) == [(200, 8.2)]
    old = (
        " iteration      100/  320000 | elapsed time per iteration (ms): 5 | learning rate 1.5E-04 | lm loss 9.9E+00 |"
    )
    assert recognised("megatron-lm", old) == [(100, 9.9)]


def test_megatron_s_runs_in_one_file() -> None:
    lines = [megatron(i, loss=f" lm loss: {9 - i / 1000:.6E} |") for i in (1000, 2000, 3000)]
    anew = read(*lines, "training ...", *lines)
    assert [i for i, _ in anew.points] == [1000, 2000, 3000, 1000, 2000, 3000]
    assert anew.ends == 1
    checkpoint = "  successfully loaded checkpoint from /checkpoints [ t 1/2, p 1/1 ] at iteration 3000"
    resumed = read(*lines, checkpoint, "training ...", megatron(3100))
    assert ([i for i, _ in resumed.points], resumed.ends) == ([1000, 2000, 3000, 3100], 0)


def test_the_last_rank_prints_megatron_s_lines() -> None:
    assert [i for i, _ in read(*(f"[rank15]:{megatron(i)}" for i in (100, 200))).points] == [100, 200]


def test_megatron_on_deepspeed_is_megatron() -> None:
    engine = (
        "[2024-05-01 12:00:00,101] [INFO] [logging.py:96:log_dist] [Rank 0] step=100, skipped=0, lr=[0.1], mom=[0.9]"
    )
    assert recognised("megatron-lm", engine, megatron(100))[-1] == (100, 9.5)


BAR = " {:3d}%|████▌     | {}/{} [00:01<00:41,  8.10it/s]"


def test_huggingface_s_numbers_in_quotes_and_of_numpy() -> None:
    assert recognised(
        "huggingface",
        BAR.format(50, 10, 20),
        "{'loss': '2.5', 'grad_norm': '1.2', 'learning_rate': '5e-05', 'epoch': '0.5'}",
        "{'eval_loss': np.float64(2.25), 'eval_f1': tensor(0.5, device='cuda:0'), 'eval_runtime': 1, 'epoch': 0.5}",
    ) == [(10, None), (10, 2.25)]


def test_a_bar_inside_huggingface_s_bar_is_none_of_the_run() -> None:
    found = read(
        BAR.format(33, 20, 60),
        "  0%|          | 0/4 [00:00<?, ?it/s]\x1b[A",
        "                    \x1b[A{'eval_loss': 1.93, 'eval_runtime': 0.0377, 'epoch': 1.0}",
        "\x1b[A" + BAR.format(33, 20, 60),
        "100%|██████████| 4/4 [00:00<00:00, 141.72it/s]\x1b[A",
        "                    \x1b[A" + BAR.format(35, 21, 60),
        BAR.format(100, 60, 60),
        "{'train_runtime': 1.681, 'train_samples_per_second': 571, 'train_loss': 1.9, 'epoch': 3.0}",
        "  0%|          | 0/4 [00:00<?, ?it/s]",
        "100%|██████████| 4/4 [00:00<00:00, 141.72it/s]",
    )
    assert (found.points, found.described.iterations) == ([(20, None), (20, 1.93), (21, None), (60, None)], 60)


def test_huggingface_s_loss_that_is_no_number_and_a_resumed_run() -> None:
    assert has_diverged(read("{'loss': nan, 'grad_norm': nan, 'learning_rate': 0.1, 'epoch': 0.5}"))
    assert recognised(
        "huggingface", BAR.format(84, 505, 600), "{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 2.53}"
    ) == [(505, None), (505, 0.5)]


def test_huggingface_s_runs_in_one_file() -> None:
    head = ("***** Running training *****", "  Total optimization steps = 600", BAR.format(0, 0, 600))
    bars = [BAR.format(step // 6, step, 600) for step in (5, 300, 400)]
    loss = "{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 2.53}"
    anew = read(*head, *bars, loss, *head, *bars, loss)
    assert ([i for i, _ in anew.points], anew.ends) == ([0, 5, 300, 400, 400, 5, 300, 400, 400], 1)
    goes_on = read(*head, *bars, loss, *head, "  Continuing training from global step 400", BAR.format(67, 405, 600))
    assert ([i for i, _ in goes_on.points], goes_on.ends) == ([0, 5, 300, 400, 400, 405], 0)


def test_what_deepspeed_prints_in_huggingface_s_run_is_beside_it() -> None:
    engine = (
        "[2024-05-01 12:00:00,101] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.1], mom=[0.9]"
    )
    found = read(engine, BAR.format(50, 10, 20), "{'loss': 2.5, 'learning_rate': 5e-05, 'epoch': 0.5}")
    assert (found.preset, found.points[-1]) == ("huggingface", (10, 2.5))


def test_trl_s_ppo_and_dpo() -> None:
    ppo = "{'eps': 2, 'objective/kl': 3.1, 'objective/rlhf_reward': 0.4, 'episode': 512, 'epoch': 0.1}"
    assert recognised("trl", ppo) == [(0.1, 0.4)]
    dpo = "{'loss': 0.69, 'learning_rate': 5e-07, 'rewards/chosen': 0.1, 'rewards/accuracies': 0.6, 'epoch': 0.59}"
    assert recognised("huggingface", dpo) == [(0.59, 0.69)]


def test_accelerate_s_scores_and_diffusers_bar() -> None:
    scores = ("epoch 0: {'accuracy': 0.68, 'f1': 0.81}", "epoch 1: {'accuracy': 0.71, 'f1': 0.82}")
    assert recognised("accelerate", *scores) == [(1, 0.68), (2, 0.71)]
    bar = "Steps:   {}%|▏         | {}/1000 [00:05<08:15,  2.0it/s, lr=1e-5, step_loss={}]"
    found = read(bar.format(1, 10, 0.12), bar.format(2, 20, "nan"))
    assert (found.preset, found.points[0], found.described.iterations) == ("accelerate", (10, 0.12), 1000)
    assert has_diverged(found)


def test_nanogpt_s_loss_that_is_no_number_and_its_next_run() -> None:
    lines = ["tokens per iteration will be: 16,384", "iter 0: loss 4.2, time 31412.65ms, mfu -100.00%"]
    lines += [f"iter {i}: loss 3.1, time 52.83ms, mfu 7.05%" for i in range(10, 200, 10)]
    assert read(*lines, *lines).ends == 1
    assert has_diverged(read(*lines, "iter 200: loss nan, time 52.83ms, mfu 7.05%"))
    resumed = read(*lines, "tokens per iteration will be: 16,384", "iter 200: loss 3.0, time 52.8ms, mfu 7.05%")
    assert (resumed.ends, resumed.points[-1]) == (0, (201, 3.0))


def test_nanochat_s_other_trainings() -> None:
    assert recognised(
        "nanochat",
        "Step 00000 | Validation loss: 1.5100",
        "Step 00000/00701 | Training loss: 1.4810| lrm: 1.000000| num_tokens: 9,999",
        "Step 00100 | Validation loss: 1.1",
    ) == [(0, 1.51), (1, None), (100, 1.1)]
    found = read("Step 0/467 | Average reward: 0.125 | Average sequence length: 120.50", "Step 60 | Pass@1: 0.05")
    assert (found.points, found.described.direction, found.described.iterations) == ([(1, 0.125)], "max", 467)


def test_fairseq_s_objects_and_bars() -> None:
    inner = (
        '2024-03-02 10:01:02 | INFO | train_inner | {"epoch": 1, "update": 0.36, "loss": "12.671", "ppl": "5539.96", '
    )
    inner += '"wps": "41250.7", "num_updates": "100", "lr": "1.25e-05", "gnorm": "3.41", "wall": "50"}'
    valid = '2024-03-02 10:02:08 | INFO | valid | {"epoch": 1, "valid_loss": "9.871", "valid_ppl": "595.19", '
    valid += '"valid_num_updates": "276", "valid_best_loss": "9.871"}'
    assert recognised("fairseq", inner, valid) == [(100, 12.671), (276, 9.871)]
    bar = "epoch 001:  43%|▍| 120/276 [00:30<00:40, 3.9it/s, loss=8.1, nll_loss=7.2, num_updates=120, lr=1e-05]"
    assert recognised("fairseq", bar) == [(120, 8.1)]
    hydra = (
        "[2026-04-10 16:45:08,685][valid][INFO] - epoch 084 | valid on 'valid' subset | loss 5.78 | num_updates 1000"
    )
    assert recognised("fairseq", hydra) == [(1000, 5.78)]


def test_fairseq_s_second_set_of_the_validation_is_another_curve() -> None:
    lines = [f"| INFO | valid | epoch 001 | valid on '{name}' subset | loss {v} | num_updates 9" for name, v in
             (("valid", 5), ("valid1", 7))]  # fmt: skip
    assert recognised("fairseq", *lines) == [(9, 5)]


def test_nemo_of_version_1() -> None:
    bar = "Epoch 0: :   0%|          | {}/300000 [02:16<22:40, v_num=0, reduced_train_loss={}, global_step={}, "
    bar += "consumed_samples=960.0, train_step_timing in s=10.40{}]"
    lines = [bar.format(5, 11.0, 4.0, ""), bar.format(6, 10.9, 5.0, ", val_loss=10.95")]
    assert recognised("nemo", *lines) == [(5, 11.0), (6, 10.95)]


def test_deepspeed_s_pipelines_and_a_loss_that_is_no_number() -> None:
    lines = [f"steps: {i} loss: {9 / i:.4f} iter time (s): 0.512 samples/sec: 31.250" for i in (10, 20)]
    assert recognised("deepspeed", *lines) == [(10, 0.9), (20, 0.45)]
    assert has_diverged(read(*lines, "steps: 30 loss: nan iter time (s): 0.512 samples/sec: 31.250"))


def test_torchtitan_s_ranks_colours_and_dates() -> None:
    line = "[rank{}]:[titan] 2025-11-25 19:45:{:02d},441 - root - INFO - \x1b[31mstep: {:2d}  \x1b[32mloss: {}  "
    line += "\x1b[33mgrad_norm:  1.4604  \x1b[36mmemory:  1.21GiB(0.86%)  tps: 5,756\x1b[39m"
    found = read(*(line.format(rank, 10 + step, step, 9.5) for step in (1, 2) for rank in (0, 1)))
    assert (found.preset, found.points) == ("torchtitan", [(1, 9.5), (2, 9.5)])
    times = [event.time for event in found.events if isinstance(event, Point)]
    assert [later - earlier for earlier, later in pairwise(t for t in times if t is not None)] == [1.0]
    assert has_diverged(read(line.format(0, 10, 1, "    nan")))


def test_opennmt_s_run_goes_on_from_a_checkpoint() -> None:
    line = "[2024-02-11 20:14:31,402 INFO] Step {}/  200; acc: 6.3; ppl: {}; xent: 8.9; lr: 0.00010; 41200/43301 tok/s;"
    head = "[2024-02-11 20:14:07,130 INFO] Start training loop and validate every 100 steps..."
    found = read(head, line.format(50, 9), line.format(100, 8), head, line.format(150, 7))
    assert (found.preset, found.ends, [i for i, _ in found.points]) == ("opennmt", 0, [50, 100, 150])


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("fairseq", "loss=10.952"),
        ("nanochat", "loss: 5.009821"),
        ("nemo", "reduced_train_loss: 8.412"),
        ("opennmt", "ppl: 1240.1"),
        ("torchtitan", "loss: \x1b[0m10.6543"),
        ("deepspeed", "loss = 2.2207"),
        ("huggingface", "'loss': 0.6101"),
        ("nanogpt", "loss 2.7321"),
        ("megatron-lm", "lm loss: 8.240515E+00"),
    ],
)
def test_a_loss_that_is_no_number_has_diverged(name: str, number: str) -> None:
    text = (SAMPLES / f"{name}.log").read_text().replace("\x1b[32mloss: 10.6543", "loss: \x1b[0m10.6543")
    assert text.count(number) == 1
    label = number.rstrip("0123456789.E+")
    assert not has_diverged(interpreted(re.split(r"[\r\n]+", text)))
    assert has_diverged(interpreted(re.split(r"[\r\n]+", text.replace(number, f"{label}nan"))))


@pytest.mark.parametrize("name", ["megatron-lm", "nanogpt", "fairseq", "torchtitan", "deepspeed", "opennmt", "nemo"])
def test_a_sample_twice_in_one_file_is_two_runs_or_one_that_is_not_counted_twice(name: str) -> None:
    lines = (SAMPLES / f"{name}.log").read_text().splitlines()
    once, twice = interpreted(lines), interpreted(lines + lines)
    highest = [run[-1] for run in _runs(twice)]
    assert len(highest) in (1, 2)
    assert {iteration for iteration, _ in highest} == {once.points[-1][0]}


def _runs(found: Parsed) -> list[list[tuple[float, float | None]]]:
    runs: list[list[tuple[float, float | None]]] = [[]]
    for event in found.events:
        if isinstance(event, Ended):
            runs.append([])
        elif isinstance(event, Point):
            runs[-1].append((event.iteration, event.metric))
    return [run for run in runs if run]
