"""The arms of the claim: enough paired seeds, and each with what its jobs declare."""

from __future__ import annotations

from evaluation.jpas.arms import AT_HEAVY, BASIC, FAIR, Group, groups
from evaluation.jpas.stream import BEFORE
from topologies.experiments.workload import HEAVY, LIGHT, MIDDLE


def test_the_claim_has_enough_paired_seeds() -> None:
    made = groups()
    seeds = {(g.workload, g.load.name): [] for g in made}
    for group in made:
        seeds[group.workload, group.load.name].append(group.seed)
    assert {key: len(of) for key, of in seeds.items()} == {
        ("families", HEAVY.name): 8, ("families", MIDDLE.name): 5, ("families", LIGHT.name): 5, ("old", HEAVY.name): 8,
    }  # fmt: skip
    assert sorted(seed % len(BEFORE) for seed in seeds["families", HEAVY.name]) == sorted([*range(len(BEFORE))] * 2)
    assert len({group.name for group in made}) == len(made)


def test_the_heavy_load_has_every_arm_and_the_others_the_basic_ones() -> None:
    for group in groups():
        names = [choice.name for choice in group.request().policies]
        is_whole = group.workload == "families" and group.load is HEAVY
        assert sorted(names) == sorted([FAIR, *(AT_HEAVY if is_whole else BASIC)])
    assert all(group.knows == BASIC for group in groups(others=False))


def test_no_arm_always_goes_first() -> None:
    first = {group.request().policies[0].name for group in groups() if group.load is HEAVY}
    assert len(first) >= 7


def test_jobs_of_an_arm_declare_what_it_knows() -> None:
    choices = {choice.name: choice for choice in Group("families", HEAVY, 83, AT_HEAVY).request().policies}
    assert not choices[FAIR].declares
    assert not choices["none"].declares
    assert len(choices["half"].declares) == HEAVY.jobs / 2
    assert choices["everything"].policy == "everything"
    assert len(choices["everything"].options["milestones"]) == HEAVY.jobs
    assert not choices["everything"].plugins.startswith("/")
    old = {choice.name: choice for choice in Group("old", HEAVY, 66, BASIC).request().policies}
    assert len(old["target"].declares) == HEAVY.jobs
    assert all(not declared.family for declared in old["target"].declares.values())


def test_a_quick_run_is_one_seed_and_nothing_alone() -> None:
    (group,) = groups(quick=True)
    assert (group.load, [choice.name for choice in group.request().policies]) == (LIGHT, ["target", FAIR])
    assert group.request().alone_iterations == 0
