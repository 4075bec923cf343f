"""The study in the simulator: the arms' jobs, what is measured, and the words of the command."""

from __future__ import annotations

import json

import pytest

from evaluation.jpas.arms import AT_HEAVY, FAIR, FAMILY_SEEDS, OLD_SEEDS, Group
from evaluation.jpas.simulation import Means
from evaluation.jpas.study import ALONE, ARMS, ERRORS, FIRST_SEED, add_up, choices, main, measure
from topologies.experiments.workload import HEAVY, Load

FEW = Load("few", jobs=3, mean_gap_seconds=1.0)


def test_wrong_targets_are_wrong_by_the_same_draws() -> None:
    made = choices(Group("families", HEAVY, FIRST_SEED, AT_HEAVY))
    five, ten = (made[name].declares for name in ERRORS)
    for job, declared in made["target"].declares.items():
        truth, some, more = declared.target, five[job].target, ten[job].target
        assert truth is not None
        assert some is not None
        assert more is not None
        assert more / truth - 1 == pytest.approx(2 * (some / truth - 1))


def test_the_claim_has_other_seeds() -> None:
    assert all(seed < FIRST_SEED for seeds in (*FAMILY_SEEDS.values(), OLD_SEEDS) for seed in seeds)


@pytest.mark.parametrize("name", ["families", "old"])
def test_a_seed_is_measured_under_every_arm(name) -> None:
    means = measure(name, FEW, ARMS[name], {}, 1003)
    assert set(means) == {ALONE, FAIR, *ARMS[name]}
    assert all(0 < mean.t90 <= mean.jct for mean in means.values())
    assert means[ALONE].t90 <= min(mean.t90 for mean in means.values())
    assert measure(name, FEW, ("none",), {}, 1003)["none"] == means["none"]


def test_figures_are_shares_of_what_fair_sharing_takes_longer() -> None:
    run = {arm: Means(30.0, 60.0) for arm in (FAIR, *ARMS["old"])}
    run |= {ALONE: Means(10.0, 30.0), "target": Means(20.0, 66.0), "everything": Means(15.0, 60.0)}
    found = add_up([run, run])
    assert found["target"]["t90_reduction"] == pytest.approx(1 / 3)
    assert found["target"]["headroom_won"] == found["target"]["headroom_more_than_none"] == pytest.approx(0.5)
    assert found["target"]["of_everything"] == pytest.approx(2 / 3)
    assert found["target"]["jct_reduction"] == pytest.approx(-0.1)
    assert found["target"]["headroom_won_ci95"] == pytest.approx([0.5, 0.5])
    assert set(found) == set(ARMS["old"])


def test_the_command_prints_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--seeds", "1", "--load", "light", "--processes", "1", "--option", "weight_end=0.2", "--json"]
    assert main([*options, "--arm", "none", "--arm", "target"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["load"], document["seeds"], document["options"]) == ("light", [FIRST_SEED], {"weight_end": 0.2})
    assert list(document["arms"]) == ["none", "target"]


def test_an_unknown_arm_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--workload", "old", "--arm", "family"])
    assert "there is no arm 'family'" in capsys.readouterr().err
