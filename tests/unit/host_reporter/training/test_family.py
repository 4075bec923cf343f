"""Which names of launchers and studies are the name of a training, and which are another one at each launch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire import JobSpec
from host_reporter.training.family import family_of_name


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "   ",
        "-",
        "..",
        "4711",
        "4711_12",
        "4711.0",
        "job",
        "job-123",
        "JOB_7",
        "job.7-2",
        "slurm-4711",
        "slurm4711",
        "wrap",
        "interactive",
        "bash",
        "sbatch",
        "run-12",
        "pytorchjob-7",
        "tfjob-0",
        "mpijob-12",
        "rayjob-3",
        "raysubmit_9aKzPqX2bC7dEfGh",
        "torchrun-5",
        "job-3f2a9c81",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "job-f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "d41d8cd98f00b204e9800998ecf8427e",
    ],
)
def test_a_launchers_prefix_and_number_is_no_family(name: str | None) -> None:
    assert family_of_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "resnet50",
        "resnet50/cifar10",
        "job-resnet50",
        "train.sh",
        "bert-2024",
        "run-ablation",
        "gpt2",
        "slurmbench",
        "7b-pretrain",
        "raytracer",
        "batchnorm",
        "lr-0.1",
        "deadbeef",
        "día",
    ],
)
def test_other_names_are_families(name: str) -> None:
    assert family_of_name(f" {name} ") == name


@given(st.text(max_size=200))
def test_a_family_is_one_that_the_controller_takes(name: str) -> None:
    family = family_of_name(name)
    if family is not None:
        assert JobSpec(family=family).family == family
