"""Which direction a metric's name says, and of which data it is."""

from __future__ import annotations

import pytest

from host_reporter.formats import names


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("loss", "min"),
        ("lm loss", "min"),
        ("val_loss", "min"),
        ("rewards_loss", "min"),
        ("eval_wer", "min"),
        ("validation_0-rmse", "min"),
        ("valid_1's binary_logloss", "min"),
        ("valid_ppl", "min"),
        ("error rate", "min"),
        ("accuracy", "max"),
        ("Acc@1", "max"),
        ("val_top5Acc", "max"),
        ("metrics/mAP50-95(B)", "max"),
        ("eval_f1", "max"),
        ("auc", "max"),
        ("validation mIoU", "max"),
        ("test-aucpr", "max"),
        ("eval-mlogloss", "min"),
        ("eval-poisson-nloglik", "min"),
        ("rollout/ep_rew_mean", "max"),
        ("episode_return", "max"),
        ("bleu", "max"),
        ("loss scale", None),
        ("learning_rate", None),
        ("grad_norm", None),
        ("elapsed time", None),
        ("best accuracy", None),
        ("throughput", None),
        ("thing", None),
        ("", None),
    ],
)
def test_the_direction_comes_from_the_name_or_is_not_known(name: str, direction: str | None) -> None:
    assert names.direction(name) == direction


def test_validation_is_told_from_training() -> None:
    assert all(map(names.is_validation, ("val_loss", "eval_accuracy", "valid_0's l2", "Test acc", "valLoss")))
    assert not any(map(names.is_validation, ("loss", "train_loss", "value", "contest")))


def test_names_are_the_same_whatever_their_case_and_signs() -> None:
    assert names.same("val_loss", "Val loss")
    assert not names.same("loss", "val_loss")
    assert not names.same("?", "!")
