"""The model table and its scaling."""

from __future__ import annotations

import pytest

from simulator.workloads import models


def test_the_table_agrees_with_what_is_known():
    megabytes = {model.name: model.bytes / 1e6 for model in models.MODELS}
    assert megabytes["resnet50"] == pytest.approx(102.5, abs=0.1)
    assert megabytes["vgg16"] == pytest.approx(553.4, abs=0.1)
    assert megabytes["mobilenet-v2"] == pytest.approx(14.2, abs=0.1)
    assert models.model("resnet50").compute_seconds == pytest.approx(64 / 219, abs=5e-4)


def test_each_number_says_where_it_is_from():
    for model in models.MODELS:
        assert model.parameters_source
        assert model.parameters > 1e6
        assert 0 < model.compute_seconds < 10
        assert ("assumption" in model.compute_source) == (model.compute_kind == "assumed")


def test_a_transfer_takes_as_long_on_the_slow_link():
    for model in models.MODELS:
        small = models.scaled(model, 100e6)
        assert small.model_bytes * 8 / 100e6 == pytest.approx(model.bytes * 8 / 10e9, rel=1e-4)
        assert (small.name, small.compute_seconds) == (model.name, model.compute_seconds)


def test_nothing_shrinks_to_nothing():
    assert models.scaled_bytes(10, 1e5) == 1


@pytest.mark.parametrize("rates", [(0.0, 1e9), (1e8, 0.0), (-1.0, 1e9), (float("nan"), 1e9)])
def test_impossible_rates_are_refused(rates):
    with pytest.raises(ValueError, match="above 0"):
        models.scaled_bytes(1e6, *rates)


def test_an_unknown_model_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match=r"resnet51.*resnet50"):
        models.model("resnet51")
